//! Forgetting a person: notes, names, and what an audit reads.

use headcount::store::people::{Forgetting, Forgotten, Noted, Policy};
use headcount::store::rooms::{Kind, NewMessage, RoomChange, RoomRow};
use headcount::store::{Saved, Store};

const NOW_MS: i64 = 1_700_000_000_000;

fn transact<S: Store, T>(store: &mut S, work: impl FnOnce(&mut S) -> T) -> T {
    store.begin().unwrap();
    let done = work(store);
    store.commit(NOW_MS).unwrap();
    done
}

fn forgetting(id: i64, person: &str, policy: Policy) -> Forgetting {
    Forgetting { id, person: person.into(), policy }
}

pub fn a_forgetting_is_noted_until_it_ends<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.unfinished_forgettings().unwrap(), []);
    let ada = forgetting(7, "ada", Policy::Anonymise);
    let bob = forgetting(-8, "bob", Policy::Remove);
    let mut begin =
        |wanted: &Forgetting| transact(&mut store, |store| store.begin_forgetting(wanted, NOW_MS).unwrap());
    assert_eq!(begin(&ada), ada);
    assert_eq!(begin(&bob), bob);
    assert_eq!(begin(&forgetting(9, "ada", Policy::Remove)), ada, "the first note stands");
    store.reopen().unwrap();
    let mut unfinished = store.unfinished_forgettings().unwrap();
    unfinished.sort_by_key(|forgetting| forgetting.id);
    assert_eq!(unfinished, [bob.clone(), ada]);
    transact(&mut store, |store| store.end_forgetting(7).unwrap());
    transact(&mut store, |store| store.end_forgetting(7).unwrap());
    assert_eq!(store.unfinished_forgettings().unwrap(), [bob]);
}

pub fn what_was_forgotten_adds_up<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let mut note = |id, what| {
        let noted = Noted { id, person_hash: "hash", policy: Policy::Remove, at_ms: NOW_MS, what };
        transact(&mut store, |store| store.note_forgotten(&noted).unwrap());
    };
    note(1, Forgotten { likes: 500, ..Forgotten::default() });
    note(1, Forgotten { likes: 20, holders: 1, messages: 0 });
    note(2, Forgotten { messages: 3, ..Forgotten::default() });
    note(1, Forgotten { messages: 4, ..Forgotten::default() });
    store.reopen().unwrap();
    assert_eq!(store.forgotten(1).unwrap(), Forgotten { likes: 520, holders: 1, messages: 4 });
    assert_eq!(store.forgotten(2).unwrap(), Forgotten { likes: 0, holders: 0, messages: 3 });
    assert_eq!(store.forgotten(3).unwrap(), Forgotten::default());
}

pub fn a_holder_s_name_goes_and_its_surrogate_stays<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = transact(&mut store, |store| store.create_holders(&["ada", "bob"]).unwrap());
    assert!(transact(&mut store, |store| store.forget_holder("ada").unwrap()));
    assert!(!transact(&mut store, |store| store.forget_holder("ada").unwrap()));
    assert_eq!(store.holder_name(keys[0]).unwrap(), None);
    assert_eq!(store.load_holders(&["ada", "bob"]).unwrap(), [None, Some(keys[1])]);
    let again = transact(&mut store, |store| store.create_holders(&["ada"]).unwrap());
    assert_ne!(again[0], keys[0], "whoever comes under the name is somebody new");
}

pub fn messages_lose_their_sender_a_few_at_a_time<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let said = |user, offset| NewMessage {
        offset,
        at_ms: NOW_MS,
        bytes: 9,
        user,
        id: Some("one"),
        kind: Kind::Text,
        body: "hi",
    };
    let rooms = ["lobby", "attic"].map(|name| {
        transact(&mut store, |store| {
            let room = store.create_room(name, &RoomRow { epoch: "e".into(), last: 0 }).unwrap();
            let messages =
                vec![said(Some("ada"), 1), said(Some("bob"), 2), said(None, 3), said(Some("ada"), 4)];
            let change = RoomChange { room, before: 0, last: 4, first: 1, messages };
            assert_eq!(store.save_room(&change).unwrap(), Saved::Done);
            room
        })
    });
    let (mut after, mut changed, mut steps) = ((0, 0), 0, 0);
    loop {
        let (messages, at) = transact(&mut store, |store| store.forget_speaker("ada", after, 3).unwrap());
        changed += messages;
        steps += 1;
        match at {
            Some(at) => after = at,
            None => break,
        }
    }
    assert_eq!((changed, steps), (4, 3), "3 looks of 3 at 8 messages");
    for room in rooms {
        let users: Vec<_> =
            store.read_messages(room, 1).unwrap().into_iter().map(|m| (m.user, m.id)).collect();
        let one = || Some("one".into());
        assert_eq!(users, [(None, None), (Some("bob".into()), one()), (None, one()), (None, None)]);
        let bytes: Vec<usize> = store.load_kept(&[room]).unwrap()[0].iter().map(|kept| kept.bytes).collect();
        assert_eq!(bytes, [2, 9, 9, 2], "what is left of it");
    }
    assert_eq!(transact(&mut store, |store| store.forget_speaker("ada", (0, 0), 100).unwrap()), (0, None));
}
