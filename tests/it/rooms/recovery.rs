//! Who comes back gets exactly what was missed, or is told that it cannot be had.

use serde_json::json;

use super::reader::Reader;
use super::socket::Socket;
use super::{later, post, timed};
use crate::service::{Service, Setup};

async fn say(service: &Service, text: &str) -> String {
    let sent = post(service, "/rooms/lobby/send", json!({"user": "ada", "text": text})).await;
    format!("{}:{}", sent["epoch"].as_str().unwrap(), sent["offset"])
}

/// What a socket that comes back at a position hears: whether all is there, and what.
async fn back_at(service: &Service, since: &str) -> (bool, Vec<String>) {
    let mut socket = Socket::open(service, &format!("lobby/socket?presence=false&since={since}")).await;
    let first = socket.frame().await;
    let mark = post(service, "/rooms/lobby/send", json!({"user": "mark", "text": "mark"})).await;
    let mut missed = Vec::new();
    let mut before = since.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    let recovered = first["recovered"].as_bool().unwrap();
    if recovered {
        assert_eq!(first["offset"], before, "whoever breaks off here has missed nothing more");
    }
    loop {
        let message = socket.frame().await;
        if recovered {
            assert_eq!(message["offset"], before + 1, "no gap: {message}");
        }
        before = message["offset"].as_u64().unwrap();
        if message["offset"] == mark["offset"] {
            return (recovered, missed);
        }
        missed.push(message["text"].as_str().unwrap().to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_what_was_missed_or_recovered_false() {
    for history in ["memory", "durable"] {
        let service = timed()
            .with("rooms.history", history)
            .with("rooms.history_messages", 4)
            .with("rooms.sleep_after_ms", 0)
            .start();
        let one = say(&service, "one").await;
        let two = say(&service, "two").await;
        assert_eq!(back_at(&service, &two).await, (true, vec![]), "{history}");
        // one, two, mark; after: three
        say(&service, "three").await;
        let missed = ["two", "mark", "three"].map(str::to_owned).to_vec();
        assert_eq!(back_at(&service, &one).await, (true, missed), "{history}");
        // one is pushed out by the second mark: 2 3 4 5 are kept
        let zero = one.replace(":1", ":0");
        assert_eq!(back_at(&service, &zero).await, (false, vec![]), "{history}: no longer whole");
        let (epoch, _) = one.split_once(':').unwrap();
        assert_eq!(
            back_at(&service, &format!("{epoch}:99")).await,
            (false, vec![]),
            "{history}: not yet said"
        );
        assert_eq!(back_at(&service, "other:1").await, (false, vec![]), "{history}: another stream");
        let last = say(&service, "old").await;
        let end = say(&service, "older").await;
        later(&service, 300_000).await;
        assert_eq!(back_at(&service, &last).await, (false, vec![]), "{history}: too old");
        drop(end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_events_comes_back_by_its_last_event_id() {
    let service = Setup::new().start();
    let mut reader = Reader::open(&service, "lobby/events", "").await;
    say(&service, "one").await;
    let one = reader.event_of("message").await;
    reader.ended_early();
    say(&service, "two").await;
    say(&service, "three").await;
    let mut reader = Reader::open(&service, "lobby/events", &format!("last-event-id: {}\r\n", one.id)).await;
    assert_eq!(reader.event().await.json()["recovered"], true);
    let (two, three) = (reader.event().await, reader.event().await);
    assert_eq!((&two.json()["text"], &three.json()["text"]), (&json!("two"), &json!("three")));
    let mut reader = Reader::open(&service, &format!("lobby/events?since={}", two.id), "").await;
    reader.event().await;
    assert_eq!(reader.event().await.json()["text"], "three");
    // A browser that is told 400 never comes back.
    let mut reader = Reader::open(&service, "lobby/events", "last-event-id: nonsense\r\n").await;
    assert_eq!(reader.event().await.json()["recovered"], false);
}

/// A commit that came too late for its answer is told all the same, before what follows it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_told_though_its_sender_was_told_that_it_may_not_be() {
    let setup = Setup::new()
        .with("rooms.history", "durable")
        .with("server.request_timeout_ms", 3_000)
        .with("mailbox.deadline_ms", 2_900)
        .with("sqlite.busy_timeout_ms", 600_000)
        .with("storage.partitions", 1);
    let service = setup.start();
    let one = say(&service, "one").await;
    let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
    listener.frame().await;
    let file = rusqlite::Connection::open(crate::files::partition_file(&setup.data_dir(), 0)).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let late =
        service.client.post("/rooms/lobby/send", json!({"user": "ada", "text": "two"}).to_string()).await;
    assert_eq!((late.status, &late.json["error"]), (503, &json!("outcome_unknown")));
    file.execute_batch("COMMIT").unwrap();
    let two = listener.frame().await;
    assert_eq!((&two["text"], &two["offset"]), (&json!("two"), &json!(2)));
    assert_eq!(back_at(&service, &one).await, (true, vec!["two".to_owned()]));
}

/// Also after a kill -9: what was answered is there, in its order, and the numbers go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_durable_history_outlives_kill_nine_and_one_in_memory_says_so() {
    for history in ["durable", "memory"] {
        let setup = Setup::new().with("rooms.history", history);
        let service = setup.start();
        let one = say(&service, "one").await;
        say(&service, "two").await;
        service.kill();
        let service = setup.start();
        let expected = match history {
            "durable" => (true, vec!["two".to_owned()]),
            _ => (false, vec![]),
        };
        assert_eq!(back_at(&service, &one).await, expected);
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

/// A message is heard after its commit: what a listener heard is there after a kill -9.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_heard_is_durable() {
    let setup = Setup::new()
        .with("rooms.history", "durable")
        .with("rooms.history_messages", 10_000)
        .with("rooms.history_bytes", 10_000_000)
        .with("rooms.socket_messages_per_s", 1_000_000);
    let service = setup.start();
    let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
    let start = listener.frame().await;
    let mut sender = Socket::open(&service, "lobby/socket?user=ada&echo=false&presence=false").await;
    for number in 0..500 {
        sender.send(&number.to_string()).await;
    }
    let mut heard = Vec::new();
    while heard.len() < 200 {
        heard.push(listener.frame().await["text"].as_str().unwrap().to_owned());
    }
    service.kill();
    let service = setup.start();
    let since = format!("{}:0", start["epoch"].as_str().unwrap());
    let (recovered, kept) = back_at(&service, &since).await;
    assert!(recovered);
    assert_eq!(kept[..heard.len()], heard[..]);
    let numbers: Vec<String> = (0..kept.len()).map(|number| number.to_string()).collect();
    assert_eq!(kept, numbers, "in order, once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_s_id_is_said_once_while_the_history_holds_it() {
    for history in ["memory", "durable"] {
        let service = Setup::new().with("rooms.history", history).start();
        let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
        let said = json!({"user": "ada", "text": "hi", "id": "m-1"});
        let sends = (0..8).map(|_| post(&service, "/rooms/lobby/send", said.clone()));
        let answers = futures_util::future::join_all(sends).await;
        assert!(answers.iter().all(|answer| answer["offset"] == 1), "{history}: {answers:?}");
        assert_eq!(answers.iter().filter(|answer| answer["replayed"] == false).count(), 1);
        let other = json!({"user": "bob", "text": "hi", "id": "m-1"});
        assert_eq!(
            post(&service, "/rooms/lobby/send", other).await["offset"],
            2,
            "an id is its sender's own"
        );
        listener.frame().await;
        assert_eq!(listener.frame().await["user"], "ada");
        assert_eq!(listener.frame().await["user"], "bob");
    }
}

/// Numbers in memory begin again at 1, after a restart and where a room was forgotten. Whoever comes back with a
/// number of before must not take those of now for the ones it missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_begins_again_is_another_one() {
    let setup = timed().with("rooms.sleep_after_ms", 0);
    let service = setup.start();
    let first = say(&service, "one").await;
    later(&service, 300_000).await;
    super::sleep::asleep(&service, 0).await;
    let second = say(&service, "another one").await;
    say(&service, "another two").await;
    assert_eq!(back_at(&service, &first).await, (false, vec![]), "forgotten meanwhile");
    service.kill();
    let service = setup.start();
    say(&service, "yet another one").await;
    say(&service, "yet another two").await;
    assert_eq!(back_at(&service, &second).await, (false, vec![]), "restarted meanwhile");
}
