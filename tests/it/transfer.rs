//! Likes in and out of a data directory: whatever is imported twice is there once, and what is exported can be imported.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::client::Client;
use crate::service::{HEADCOUNT, Setup, eventually};

fn write(setup: &Setup, name: &str, text: &str) -> PathBuf {
    let file = setup.scratch().join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn run(setup: &Setup, command: &str, arguments: &[&str]) -> Output {
    let data_dir = setup.data_dir();
    setup.run(&[&[command, "--data-dir", data_dir.to_str().unwrap()], arguments].concat())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// What an import that succeeds says.
fn import(setup: &Setup, arguments: &[&str]) -> String {
    let output = run(setup, "import", arguments);
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of an export, sorted, without its header.
fn export(setup: &Setup, arguments: &[&str]) -> BTreeSet<String> {
    let output = run(setup, "export", arguments);
    assert!(output.status.success(), "{}", text(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter(|line| !["item,user,when", "item,count"].contains(line)).map(str::to_owned).collect()
}

async fn total(client: &Client, item: &str) -> (i64, i64) {
    (client.rolled_up(item).await, client.exact(item).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn likes_come_in_once_and_are_like_any_other() {
    let setup = Setup::new();
    let service = setup.start();
    service.client.like("post", "user-3").await;
    assert!(service.stop().success());
    let csv: String =
        (0..100).map(|n| format!("post,user-{n},{}\n", 1_700_000_000_000_i64 + n * 1_000)).collect();
    let file = write(&setup, "likes.csv", &format!("item,user,when\n{csv}"));
    let file = file.to_str().unwrap();
    assert_eq!(import(&setup, &[file]), "imported 100 rows, 99 of them new; 0 bad lines\n");
    setup.assert_verified();
    assert_eq!(import(&setup, &[file]), "imported 100 rows, 0 of them new; 0 bad lines\n");
    let service = setup.start();
    let client = &service.client;
    assert_eq!(total(client, "post").await, (100, 100));
    assert_eq!(client.like("post", "user-7").await.json["changed"], false);
    assert_eq!(client.unlike("post", "user-7").await.json["changed"], true);
    let likes = client.get("/users/user-9/likes").await.json["likes"].clone();
    assert_eq!(likes, serde_json::json!([{"item": "post", "likedAt": 1_700_000_009_000_i64}]));
    assert_eq!(total(client, "post").await, (99, 99));
    assert!(service.stop().success());
    // Who has unliked meanwhile likes it again.
    assert_eq!(import(&setup, &[file]), "imported 100 rows, 1 of them new; 0 bad lines\n");
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_are_told_with_their_numbers_and_stop_nothing_unless_asked() {
    let setup = Setup::new();
    let file = write(&setup, "likes.csv", "a,ada\n,ada\nb\nb,bob,soon\nc,carla\n\"c\n");
    let output = run(&setup, "import", &[file.to_str().unwrap()]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "imported 2 rows, 2 of them new; 4 bad lines\n");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in [2, 3, 4, 6] {
        assert!(told.contains(&format!("line {line}: ")), "{told}");
    }
    assert!(!told.contains("line 1:") && !told.contains("line 5:"), "{told}");

    let setup = Setup::new();
    let file = write(&setup, "likes.csv", "a,ada\n,ada\nc,carla\n");
    let output = run(&setup, "import", &["--strict", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("line 2: the item"), "{}", text(&output));
    assert_eq!(export(&setup, &[]).len(), 1);
    setup.assert_verified();

    // Many bad lines are counted, and not all told.
    let file = write(&setup, "bad.csv", &"x\n".repeat(1000));
    let output = run(&setup, "import", &[file.to_str().unwrap()]);
    assert!(text(&output).contains("1000 bad lines"), "{}", text(&output));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_a_base_imported_twice_under_one_id_counts_once() {
    let setup = Setup::new();
    let file = write(&setup, "base.csv", "item,count\npost,8000\nother,3\n");
    let base = ["--base", "--import-id", "from-the-old-site", file.to_str().unwrap()];
    assert_eq!(import(&setup, &base), "imported 2 rows, 2 of them new; 0 bad lines\n");
    assert_eq!(import(&setup, &base), "imported 2 rows, 0 of them new; 0 bad lines\n");
    let service = setup.start();
    let client = &service.client;
    assert_eq!(client.like("post", "ada").await.json["changed"], true);
    assert_eq!(total(client, "post").await, (8001, 8001));
    assert_eq!(total(client, "other").await, (3, 3));
    assert!(service.stop().success());
    setup.assert_verified();

    // Another amount under the same id is a mistake, twice in a file too; another id is another base.
    let file = write(&setup, "other.csv", "post,8000\npost,9000\nnew,1\nnew,2\nnew,1\nbad,-1\nbad,many\n");
    let output =
        run(&setup, "import", &["--base", "--import-id", "from-the-old-site", file.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(text(&output).contains("imported 3 rows, 1 of them new; 4 bad lines"), "{}", text(&output));
    assert!(
        text(&output).contains("line 2: post has a base of 8000 from this import already"),
        "{}",
        text(&output)
    );
    let file = write(&setup, "more.csv", "post,10\n");
    import(&setup, &["--base", "--import-id", "more", file.to_str().unwrap()]);
    let service = setup.start();
    assert_eq!(total(&service.client, "post").await, (8011, 8011));
    assert_eq!(total(&service.client, "new").await, (1, 1));
    assert!(service.stop().success());
    setup.assert_verified();

    for id in ["", "with space", "x/y", &"x".repeat(65)] {
        let output = run(&setup, "import", &["--base", "--import-id", id, file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{id:?}: {}", text(&output));
    }
    let output = run(&setup, "import", &["--base", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "an id is asked for: {}", text(&output));
}

/// Names with everything in them that a name may hold, base counts, people that were anonymised.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_and_imported_elsewhere_is_the_same() {
    let setup = Setup::new().with("likes.shards", 5).with("sqlite.pending_rows", 30);
    let base = write(&setup, "base.csv", "post,8000\nonly-base,5\n");
    import(&setup, &["--base", "--import-id", "one", base.to_str().unwrap()]);
    let service = setup.start();
    let client = &service.client;
    for n in 0..60 {
        client.like("post", &format!("user-{n}")).await;
        client.like(&format!("item-{}", n % 9), &format!("user-{n}")).await;
    }
    for name in ["a%2Cb", "%22quoted%22", "%27", "%E6%97%A5%E6%9C%AC", "a%20b", "%3D1%2B1", "item"] {
        assert_eq!(client.like(name, name).await.status, 200);
    }
    client.delete("/users/user-7?policy=anonymise").await;
    client.unlike("post", "user-8").await;
    client.like("gone", "user-1").await;
    client.delete("/likes/gone").await;
    // Some of it waits in the journal, beside the running service.
    let likes = export(&setup, &[]);
    assert_eq!(likes.len(), 60 + 60 - 2 - 1 + 7);
    let bases = export(&setup, &["--base"]);
    assert_eq!(bases, ["post,8001", "only-base,5", "item-7,1"].map(str::to_owned).into());
    assert!(service.stop().success());
    assert_eq!(export(&setup, &[]), likes);

    for (format, name) in [("csv", "likes.csv"), ("ndjson", "likes.ndjson")] {
        let other = Setup::new().with("likes.shards", 16).with("storage.partitions", 3);
        let file = other.scratch().join(name);
        let base = other.scratch().join(format!("base.{format}"));
        for (arguments, file) in [(&[][..], &file), (&["--base"], &base)] {
            let output = run(&setup, "export", &[arguments, &[file.to_str().unwrap()]].concat());
            assert!(output.status.success(), "{}", text(&output));
        }
        for _ in 0..2 {
            import(&other, &[file.to_str().unwrap()]);
            import(&other, &["--base", "--import-id", "moved", base.to_str().unwrap()]);
        }
        other.assert_verified();
        assert_eq!(export(&other, &[]), likes, "{format}");
        assert_eq!(export(&other, &["--base"]), bases, "{format}");
        let service = other.start();
        assert_eq!(total(&service.client, "post").await, (8001 + 58, 8001 + 58), "{format}");
        assert_eq!(total(&service.client, "only-base").await, (5, 5));
        assert!(service.stop().success());
        other.assert_verified();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_and_output_are_files_too() {
    let setup = Setup::new();
    let mut child = Command::new(HEADCOUNT)
        .args(["import", "--format", "ndjson", "--data-dir"])
        .arg(setup.data_dir())
        .current_dir(setup.scratch())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"item\":\"a\",\"user\":\"ada\",\"when\":7000}\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(export(&setup, &[]), ["a,ada,7000".to_owned()].into());
    assert_eq!(
        export(&setup, &["--format", "ndjson"]),
        [r#"{"item":"a","user":"ada","when":7000}"#.to_owned()].into()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_imported_beside_a_running_service() {
    let setup = Setup::new();
    let service = setup.start();
    let file = write(&setup, "likes.csv", "a,ada\n");
    let output = run(&setup, "import", &[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("in use by another headcount process"), "{}", text(&output));
    assert_eq!(service.client.exact("a").await, 0);
}

/// Killed somewhere in it; imported again, it is whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_killed_is_repeated() {
    let setup = Setup::new();
    let rows: String = (0..200_000).map(|n| format!("item-{},user-{n}\n", n % 100)).collect();
    let file = write(&setup, "likes.csv", &rows);
    let mut child = Command::new(HEADCOUNT)
        .args(["import", "--data-dir"])
        .arg(setup.data_dir())
        .arg(&file)
        .current_dir(setup.scratch())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_begun = || {
        let data_dir = setup.data_dir();
        data_dir.join("partition-001.db").exists()
            && rusqlite::Connection::open(data_dir.join("partition-001.db"))
                .and_then(|file| {
                    file.query_row("SELECT count(*) FROM journal", [], |row| row.get::<_, i64>(0))
                })
                .is_ok_and(|rows| rows > 0)
    };
    eventually("some of it is in", is_begun);
    child.kill().unwrap();
    child.wait().unwrap();
    setup.assert_verified();
    let before = export(&setup, &[]).len();
    assert!(before > 0);
    import(&setup, &[file.to_str().unwrap()]);
    assert_eq!(export(&setup, &[]).len(), 200_000);
    setup.assert_verified();
    let service = setup.start();
    assert_eq!(total(&service.client, "item-7").await, (2_000, 2_000));
}
