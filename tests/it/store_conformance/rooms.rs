//! The durable history of rooms.

use std::sync::Arc;

use headcount::store::rooms::{Kind, NewMessage, RoomChange, RoomKey, RoomRow, StoredMessage};
use headcount::store::{Saved, Store};

fn row(last: u64) -> RoomRow {
    RoomRow { epoch: Arc::from("e1"), last }
}

fn say(offset: u64, at_ms: i64, body: &str) -> NewMessage<'_> {
    NewMessage {
        offset,
        at_ms,
        bytes: body.len(),
        user: Some("ada"),
        id: Some("m-1"),
        kind: Kind::Text,
        body,
    }
}

fn change(
    room: RoomKey,
    (before, last): (u64, u64),
    first: u64,
    messages: Vec<NewMessage<'_>>,
) -> RoomChange<'_> {
    RoomChange { room, before, last, first, messages }
}

/// A room with messages 1 to 3, said at 10, 20 and 30.
fn with_three<S: Store>(store: &mut S, name: &str) -> RoomKey {
    let room = store.create_room(name, &row(0)).unwrap();
    let messages = vec![say(1, 10, "one"), say(2, 20, "two"), say(3, 30, "three")];
    assert_eq!(store.save_room(&change(room, (0, 3), 1, messages)).unwrap(), Saved::Done);
    room
}

fn offsets<S: Store>(store: &mut S, room: RoomKey) -> Vec<u64> {
    store.read_messages(room, 0).unwrap().iter().map(|message| message.offset).collect()
}

pub fn a_room_is_created_once_and_found_by_name<S: Store>(open: &dyn Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    assert_eq!(store.load_rooms(&["lobby"]).unwrap(), [None]);
    let room = store.create_room("lobby", &row(7)).unwrap();
    assert!(store.create_room("lobby", &row(7)).is_err());
    store.commit(0).unwrap();
    drop(store);
    let mut store = open();
    store.begin().unwrap();
    assert_eq!(store.load_rooms(&["none", "lobby"]).unwrap(), [None, Some((room, row(7)))]);
}

pub fn messages_are_kept_as_they_were_said<S: Store>(open: &dyn Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let room = store.create_room("lobby", &row(0)).unwrap();
    let data = NewMessage { user: None, id: None, kind: Kind::Data, ..say(2, 20, r#"{"x":1.0}"#) };
    let messages = vec![say(1, 10, "héllo\n"), data];
    assert_eq!(store.save_room(&change(room, (0, 2), 1, messages)).unwrap(), Saved::Done);
    store.commit(0).unwrap();
    drop(store);
    let mut store = open();
    store.begin().unwrap();
    let message = |offset, at_ms, user: Option<&str>, id: Option<&str>, kind, body: &str| StoredMessage {
        offset,
        at_ms,
        user: user.map(Into::into),
        id: id.map(Into::into),
        kind,
        body: body.into(),
    };
    let one = message(1, 10, Some("ada"), Some("m-1"), Kind::Text, "héllo\n");
    let two = message(2, 20, None, None, Kind::Data, r#"{"x":1.0}"#);
    assert_eq!(store.read_messages(room, 0).unwrap(), [one, two.clone()]);
    assert_eq!(store.read_messages(room, 2).unwrap(), [two]);
    let kept = store.load_kept(&[room]).unwrap();
    let books: Vec<_> = kept[0].iter().map(|kept| (kept.offset, kept.at_ms, kept.bytes)).collect();
    assert_eq!(books, [(1, 10, 7), (2, 20, 9)]);
    assert_eq!(kept[0][0].id.as_deref(), Some("m-1"));
}

pub fn a_room_that_changed_meanwhile_is_a_conflict<S: Store>(open: &dyn Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let room = with_three(&mut store, "lobby");
    let late = change(room, (2, 3), 1, vec![say(3, 30, "another three")]);
    assert_eq!(store.save_room(&late).unwrap(), Saved::Conflict);
    assert_eq!(store.save_room(&change(room, (3, 4), 1, vec![say(4, 40, "four")])).unwrap(), Saved::Done);
}

pub fn what_is_let_go_of_is_gone<S: Store>(open: &dyn Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let (room, other) = (with_three(&mut store, "lobby"), with_three(&mut store, "other"));
    let messages = vec![say(4, 40, "four"), say(5, 50, "five")];
    assert_eq!(store.save_room(&change(room, (3, 5), 3, messages)).unwrap(), Saved::Done);
    assert_eq!(offsets(&mut store, room), [3, 4, 5]);
    // More than is kept in one batch.
    let messages = vec![say(6, 60, "six"), say(7, 70, "seven")];
    assert_eq!(store.save_room(&change(room, (5, 7), 7, messages)).unwrap(), Saved::Done);
    assert_eq!(offsets(&mut store, room), [7]);
    assert_eq!(offsets(&mut store, other), [1, 2, 3], "its own alone");
}

pub fn a_purge_takes_what_is_old_and_rooms_that_keep_nothing<S: Store>(open: &dyn Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let (room, old) = (with_three(&mut store, "lobby"), store.create_room("old", &row(0)).unwrap());
    assert_eq!(store.save_room(&change(old, (0, 1), 1, vec![say(1, 20, "old")])).unwrap(), Saved::Done);
    assert_eq!(store.purge_messages(20).unwrap(), 3);
    assert_eq!(offsets(&mut store, room), [3]);
    assert_eq!(store.load_rooms(&["lobby", "old"]).unwrap(), [Some((room, row(3))), None]);
    assert_ne!(store.create_room("old", &row(0)).unwrap(), old, "an id never comes back");
}
