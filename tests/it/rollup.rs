//! The roll-up's own manners: it writes nothing when nothing changed, and reads every change it claims.

use crate::client::Client;
use crate::files;
use crate::service::Setup;

/// Waits for so many whole runs.
pub async fn runs(client: &Client, count: usize) {
    let as_of = async || client.get("/likes/any").await.json["asOf"].as_i64().unwrap();
    let mut last = as_of().await;
    for _ in 0..count {
        while as_of().await == last {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        last = as_of().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_changes_writes_nothing() {
    writes_nothing(Setup::new()).await;
}

/// Changes that fill their last page to the brim are carried once, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_changes_after_a_full_page_writes_nothing() {
    writes_nothing(Setup::new().with("rollup.page_items", 1)).await;
}

async fn writes_nothing(setup: Setup) {
    let service = setup.start();
    let client = &service.client;
    client.like("post", "ada").await;
    assert_eq!(client.rolled_up("post").await, 1);
    // The sweep at the start is over, too.
    runs(client, 2).await;

    let data_dir = setup.data_dir();
    let names: Vec<String> =
        files::partitions(&data_dir).into_iter().chain(["summary.db".to_owned()]).collect();
    let connections: Vec<_> = names.iter().map(|name| files::open(&data_dir, name)).collect();
    // A connection sees its data_version change when another one commits a change.
    let look = || -> Vec<(i64, u64, std::time::SystemTime)> {
        let seen = names.iter().zip(&connections).map(|(name, connection)| {
            let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap();
            let wal = std::fs::metadata(data_dir.join(format!("{name}-wal"))).unwrap();
            (version, wal.len(), wal.modified().unwrap())
        });
        seen.collect()
    };
    let before = look();
    runs(client, 3).await;
    assert_eq!(look(), before);

    client.like("post", "bob").await;
    assert_eq!(client.rolled_up("post").await, 2);
    let after = look();
    assert_ne!(after.last(), before.last(), "a run with a change writes the summary");
}
