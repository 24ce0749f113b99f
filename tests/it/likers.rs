//! Lists of likes: of a user, from its shard; of an item, from an index that is a setting. Page by page, while others like.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::client::Client;
use crate::files;
use crate::service::{Setup, eventually};

/// Every entry of a list, page by page; no page is larger than asked for.
async fn pages(client: &Client, path: &str, list: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = client.get(&format!("{path}?limit={limit}{cursor}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let entries = answer.json[list].as_array().unwrap();
        assert!(entries.len() <= limit);
        all.extend(entries.iter().map(|entry| entry.as_str().or(entry["item"].as_str()).unwrap().to_owned()));
        match answer.json["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

async fn likes_of(client: &Client, user: &str, limit: usize) -> BTreeSet<String> {
    let all = pages(client, &format!("/users/{user}/likes"), "likes", limit).await;
    let set: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len(), "an item comes twice: {all:?}");
    set
}

async fn likers_of(client: &Client, item: &str, limit: usize) -> Vec<String> {
    let all = pages(client, &format!("/likes/{item}/users"), "users", limit).await;
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    all
}

fn names(kind: &str, numbers: impl Iterator<Item = usize>) -> BTreeSet<String> {
    numbers.map(|n| format!("{kind}-{n}")).collect()
}

/// Settled and not, liked, unliked and liked again, of items that were deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_s_likes_are_listed_once_each() {
    for pending_rows in [1, 20, 100_000] {
        let setup = Setup::new().with("sqlite.pending_rows", pending_rows);
        let service = setup.start();
        let client = &service.client;
        for n in 0..30 {
            client.like(&format!("item-{n}"), "ada").await;
            client.like(&format!("item-{n}"), "bob").await;
        }
        for n in (0..30).step_by(3) {
            client.unlike(&format!("item-{n}"), "ada").await;
        }
        client.like("item-3", "ada").await;
        client.delete("/likes/item-4").await;
        let expected = names("item", (0..30).filter(|n| (n % 3 != 0 && *n != 4) || *n == 3));
        for limit in [1, 7, 19, 200] {
            assert_eq!(likes_of(client, "ada", limit).await, expected, "{limit}");
        }
        assert_eq!(likes_of(client, "bob", 200).await.len(), 29);
        assert!(likes_of(client, "nobody", 200).await.is_empty());
        let first = client.get("/users/ada/likes?limit=1").await;
        let liked_at = first.json["likes"][0]["likedAt"].as_i64().unwrap();
        assert!((0..60_000).contains(&(crate::time::wall_ms() - liked_at)), "{liked_at}");
        service.kill();
        assert_eq!(likes_of(&setup.start().client, "ada", 5).await, expected, "after a kill");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_s_end_is_what_it_was_told() {
    let setup = Setup::new();
    let service = setup.start();
    for item in ["a", "b"] {
        service.client.like(item, "ada").await;
    }
    let told =
        service.client.get("/users/ada/likes?limit=1").await.json["cursor"].as_str().unwrap().to_owned();
    assert!(told.starts_with("16-2-"), "{told}");
    let long = format!("16-2-{}", "9".repeat(30));
    for bad in ["1", "16-2", "16-2-", "16-2-0", "-16-2-1", "16-2-1-1", "16-2-x", "a", long.as_str(), ""] {
        let answer = service.client.get(&format!("/users/ada/likes?cursor={bad}")).await;
        assert_eq!((answer.status, answer.error()), (400, "invalid_query"), "{bad:?}");
        assert_eq!(answer.json["field"], "cursor");
    }
    // Of data that was laid out in another way.
    let answer = service.client.get("/users/ada/likes?cursor=32-2-1").await;
    assert_eq!((answer.status, answer.error()), (400, "invalid_query"));
    for limit in ["0", "201", "x"] {
        let answer = service.client.get(&format!("/users/ada/likes?limit={limit}")).await;
        assert_eq!((answer.status, answer.error()), (400, "invalid_query"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_likes_an_item_is_known_where_that_is_switched_on() {
    let setup = Setup::new().with("sqlite.pending_rows", 30);
    let service = setup.start();
    for user in 0..60 {
        service.client.like("post", &format!("user-{user}")).await;
        service.client.like("other", &format!("user-{user}")).await;
    }
    let answer = service.client.get("/likes/post/users").await;
    assert_eq!((answer.status, answer.error()), (409, "not_indexed"));
    let answer = service.client.get("/likes/never-was/users").await;
    assert_eq!((answer.status, answer.error()), (409, "not_indexed"));
    service.kill();

    // Switched on, what was there before is put in beside the service.
    let indexed = setup.clone().with("likes.index_by_item", true);
    let service = indexed.start();
    let client = &service.client;
    let whole = || files::sum(&setup.data_dir(), "SELECT complete FROM item_index") == 2;
    eventually("the index is whole", whole);
    let everybody: Vec<String> = names("user", 0..60).into_iter().collect();
    for limit in [1, 7, 60, 200] {
        assert_eq!(likers_of(client, "post", limit).await, everybody, "{limit}");
    }
    // What comes from then on is in it, settled or not.
    for user in (0..60).step_by(2) {
        client.unlike("post", &format!("user-{user}")).await;
    }
    for user in 60..90 {
        client.like("post", &format!("user-{user}")).await;
    }
    let expected: Vec<String> =
        names("user", (0..90).filter(|n| n % 2 == 1 || *n >= 60)).into_iter().collect();
    for limit in [1, 7, 60, 200] {
        assert_eq!(likers_of(client, "post", limit).await, expected, "{limit}");
    }
    assert_eq!(likers_of(client, "other", 200).await, everybody);
    assert!(likers_of(client, "never-was", 200).await.is_empty());
    client.delete("/likes/other").await;
    assert!(likers_of(client, "other", 200).await.is_empty());
    setup.assert_verified();
    service.kill();
    let service = indexed.start();
    assert_eq!(likers_of(&service.client, "post", 13).await, expected, "after a kill");
    assert!(service.stop().success());
    setup.assert_verified();
    let rows = "SELECT count(*) FROM item_members";
    assert_eq!(
        files::sum(&setup.data_dir(), rows),
        files::sum(&setup.data_dir(), "SELECT count(*) FROM memberships")
    );

    // Switched off, it is gone, and switched on again it is whole again.
    let service = setup.start();
    assert_eq!(files::sum(&setup.data_dir(), rows), 0);
    assert_eq!(service.client.get("/likes/post/users").await.error(), "not_indexed");
    assert_eq!(service.client.unlike("post", "user-1").await.json["changed"], true);
    assert!(service.stop().success());
    let service = indexed.start();
    eventually("the index is whole again", whole);
    let left: Vec<String> = expected.into_iter().filter(|user| user != "user-1").collect();
    assert_eq!(likers_of(&service.client, "post", 200).await, left);
}

/// Killed while it is built, it goes on; asked meanwhile, it says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_not_whole_answers_nothing_and_is_built_on() {
    let setup = Setup::new().with("storage.partitions", 1).with("sqlite.pending_rows", 1);
    let service = setup.start();
    let rows: Vec<String> = (0..5_000).map(|user| format!("post,user-{user:04}")).collect();
    assert!(service.stop().success());
    let file = setup.scratch().join("likes.csv");
    std::fs::write(&file, rows.join("\n")).unwrap();
    let data_dir = setup.data_dir();
    let imported = setup.run(&["import", file.to_str().unwrap(), "--data-dir", data_dir.to_str().unwrap()]);
    assert!(imported.status.success(), "{imported:?}");

    // A few rows a commit, each of which is held up.
    let slow = setup.clone().with("likes.index_by_item", true).with("faults.commit_delay_ms", 300);
    let service = slow.start();
    let built = || files::sum(&data_dir, "SELECT count(*) FROM item_members");
    eventually("a part of it is built", || built() > 0);
    let answer = service.client.get("/likes/post/users").await;
    if built() < 5_000 {
        assert_eq!((answer.status, answer.error()), (503, "index_building"));
        assert!(!answer.header("retry-after").is_empty());
    }
    service.kill();
    let part = built();
    assert!(0 < part && part < 5_000, "{part}");
    let service = setup.clone().with("likes.index_by_item", true).start();
    eventually("the rest", || files::sum(&data_dir, "SELECT complete FROM item_index") == 1);
    assert_eq!(built(), 5_000);
    assert_eq!(likers_of(&service.client, "post", 200).await.len(), 5_000);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Whoever stays is in the list exactly once, whatever others do while it is read.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_stable_while_others_come_and_go() {
    let setup = Setup::new().with("likes.index_by_item", true).with("sqlite.pending_rows", 50);
    let service = setup.start();
    let client = &service.client;
    for n in 0..40 {
        client.like("post", &format!("stays-{n}")).await;
        client.like(&format!("stays-{n}"), "ada").await;
    }
    let stop = AtomicBool::new(false);
    let toggling = async {
        for n in 0.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let name = format!("comes-{}", n % 25);
            client.like("post", &name).await;
            client.like(&name, "ada").await;
            client.unlike("post", &format!("comes-{}", (n + 12) % 25)).await;
            client.unlike(&format!("comes-{}", (n + 12) % 25), "ada").await;
        }
    };
    let reading = async {
        let stays = names("stays", 0..40);
        for limit in [1, 3, 10, 40, 200] {
            let users = likers_of(client, "post", limit).await;
            assert_eq!(users.iter().filter(|user| stays.contains(*user)).count(), 40, "{limit}");
            assert!(likes_of(client, "ada", limit).await.is_superset(&stays), "{limit}");
        }
        stop.store(true, Ordering::Release);
    };
    tokio::join!(toggling, reading);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// The index is audited like everything else.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_lost_a_row_is_found_and_built_anew() {
    let setup = Setup::new().with("likes.index_by_item", true);
    let service = setup.start();
    for user in 0..20 {
        service.client.like("post", &format!("user-{user}")).await;
    }
    assert!(service.stop().success());
    setup.assert_verified();
    let data_dir = setup.data_dir();
    files::execute(
        &data_dir,
        "partition-000.db",
        "DELETE FROM item_members WHERE user = (SELECT min(user) FROM item_members)",
    );
    let (passes, text) = setup.verify();
    assert!(!passes && text.contains("the index by item: 1 rows are not what the memberships say"), "{text}");
    let repaired = setup.run(&["verify", "--repair", "--data-dir", data_dir.to_str().unwrap()]);
    assert!(repaired.status.success(), "{repaired:?}");
    let service = setup.start();
    eventually("it is whole", || files::sum(&data_dir, "SELECT complete FROM item_index") == 2);
    assert_eq!(likers_of(&service.client, "post", 200).await.len(), 20);
    let answer: Value = service.client.get("/likes/post/users?limit=2&cursor=user-18").await.json;
    assert_eq!(answer["users"], serde_json::json!(["user-19", "user-2"]));
}
