//! Sets, and the bookings that are their lines.

use headcount::store::bookings::{Booking, HolderKey, Reason, State, Terms};
use headcount::store::reservations::{
    Attempt, AttemptKey, ReservationChanges, Status, Workshop, WorkshopKey,
};
use headcount::store::sets::{SetChange, SetLine, SetRefusal, SetRow, SetState};
use headcount::store::{Saved, Store};

fn set(state: SetState) -> SetRow {
    let line = |workshop: &str, seats| SetLine { workshop: workshop.into(), seats, key: None };
    SetRow {
        lines: vec![line("alpha", 2), line("beta", 1)],
        hold: true,
        ttl_ms: Some(500),
        default_ttl_ms: Some(700),
        holder: Some(HolderKey(7)),
        state,
        finished: false,
        begun_at_ms: 10,
        expires_at_ms: (state == SetState::Held).then_some(510),
        refusal: None,
        round: 0,
        version: 1,
    }
}

fn save<S: Store>(store: &mut S, request: &str, before: Option<i64>, after: &SetRow) -> Saved {
    store.begin().unwrap();
    let saved = store.save_sets(&[SetChange { request, before, after }]).unwrap();
    match saved {
        Saved::Done => {
            store.commit(0).unwrap();
        }
        Saved::Conflict => store.rollback().unwrap(),
    }
    saved
}

fn load<S: Store>(store: &mut S, request: &str) -> Option<SetRow> {
    store.load_sets(&[request]).unwrap().remove(0)
}

pub fn a_set_is_kept_as_decided<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(load(&mut store, "set"), None);
    let mut row = set(SetState::Pending);
    assert_eq!(save(&mut store, "set", None, &row), Saved::Done);
    assert_eq!(load(&mut store, "set").as_ref(), Some(&row));
    drop(store);
    let mut store = open();
    let refusal = SetRefusal { workshop: "beta".into(), reason: Reason::WorkshopGone };
    let steps = [
        (SetState::Held, Some(510), None),
        (SetState::Confirmed, None, None),
        (SetState::Cancelled, None, None),
        (SetState::Expired, None, None),
        (SetState::Retaking, None, None),
        (SetState::Refused, None, Some(refusal)),
    ];
    for (state, expires_at_ms, refusal) in steps {
        let before = row.version;
        let round = row.round + 1;
        row = SetRow { state, expires_at_ms, refusal, round, version: before + 1, ..row };
        assert_eq!(save(&mut store, "set", Some(before), &row), Saved::Done);
        assert_eq!(load(&mut store, "set").as_ref(), Some(&row));
    }
    let before = row.version;
    row.lines[1].key = Some(WorkshopKey(4));
    row = SetRow { finished: true, version: before + 1, ..row };
    assert_eq!(save(&mut store, "set", Some(before), &row), Saved::Done);
    let plain = SetRow { hold: false, ttl_ms: None, holder: None, ..set(SetState::Pending) };
    assert_eq!(save(&mut store, "other", None, &plain), Saved::Done);
    // In the order of the question.
    let loaded = store.load_sets(&["other", "none", "set"]).unwrap();
    assert_eq!(loaded, [Some(plain), None, Some(row)]);
}

pub fn a_set_that_changed_meanwhile_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let first = set(SetState::Pending);
    assert_eq!(save(&mut store, "set", None, &first), Saved::Done);
    assert_eq!(save(&mut store, "set", None, &first), Saved::Conflict);
    let held = SetRow { version: 2, ..set(SetState::Held) };
    assert_eq!(save(&mut store, "set", Some(1), &held), Saved::Done);
    let late = SetRow { version: 2, ..set(SetState::Confirmed) };
    assert_eq!(save(&mut store, "set", Some(1), &late), Saved::Conflict);
    assert_eq!(load(&mut store, "set"), Some(held));
}

pub fn sets_that_are_to_be_gone_on_with_are_found<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.next_set_due_at_ms().unwrap(), None);
    let finished = SetRow { finished: true, ..set(SetState::Held) };
    let later = SetRow { expires_at_ms: Some(900), ..finished.clone() };
    for (id, row) in
        [("c", set(SetState::Pending)), ("a", set(SetState::Confirmed)), ("b", later), ("d", finished)]
    {
        assert_eq!(save(&mut store, id, None, &row), Saved::Done);
    }
    let found = |ids: Vec<std::sync::Arc<str>>| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    assert_eq!(found(store.unfinished_sets("", 9).unwrap()), ["a", "c"]);
    assert_eq!(found(store.unfinished_sets("", 1).unwrap()), ["a"]);
    assert_eq!(found(store.unfinished_sets("a", 9).unwrap()), ["c"]);
    assert_eq!(store.next_set_due_at_ms().unwrap(), Some(510));
    assert!(store.due_sets(509, 9).unwrap().is_empty());
    assert_eq!(found(store.due_sets(510, 9).unwrap()), ["d"]);
    assert_eq!(found(store.due_sets(900, 9).unwrap()), ["d", "b"]);
    assert_eq!(found(store.due_sets(900, 1).unwrap()), ["d"]);
}

fn line(holder: Option<HolderKey>) -> Booking {
    Booking {
        terms: Terms { hold: true, of_set: true, holder, ..Terms::default() },
        queued: false,
        state: State::Held,
        seats: 2,
        since_ms: 10,
        expires_at_ms: None,
        place: None,
        set_ends_at_ms: None,
        set_round: 0,
    }
}

/// A workshop with a line of a set.
fn with_a_line<S: Store>(store: &mut S, booking: &Booking) -> WorkshopKey {
    store.begin().unwrap();
    let workshop = Workshop { capacity: 4, reserved: 2, held: 2, ..Workshop::default() };
    let workshop = store.create_workshops(&[("alpha", workshop)], 0).unwrap().remove(0);
    let key = AttemptKey { workshop, request: "set" };
    let attempt =
        Attempt { seats: 2, status: Status::Accepted, reserved_after: 2, decided_at_ms: 10, reason: None };
    let changes = ReservationChanges {
        attempts: vec![(key, attempt)],
        bookings: vec![(key, booking)],
        ..ReservationChanges::default()
    };
    assert_eq!(store.save_reservations(&changes).unwrap(), Saved::Done);
    store.commit(0).unwrap();
    workshop
}

pub fn a_line_of_a_set_is_one_and_has_no_end<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let booking = line(None);
    let workshop = with_a_line(&mut store, &booking);
    let key = AttemptKey { workshop, request: "set" };
    assert_eq!(store.load_bookings(&[key]).unwrap(), [Some(booking)]);
    assert_eq!(store.due_seats(workshop, i64::MIN, i64::MAX).unwrap(), Default::default());
    assert!(store.due_bookings(workshop, i64::MAX, 9).unwrap().is_empty());
    assert_eq!(store.next_due_at_ms().unwrap(), None);
}

pub fn a_holder_stays_as_long_as_a_set_names_it<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let holders = store.create_holders(&["ada", "bob"]).unwrap();
    store.commit(0).unwrap();
    let workshop = with_a_line(&mut store, &line(Some(holders[0])));
    let row = SetRow { holder: Some(holders[0]), ..set(SetState::Pending) };
    assert_eq!(save(&mut store, "set", None, &row), Saved::Done);
    store.begin().unwrap();
    store.delete_workshop(workshop, "alpha", 20).unwrap();
    while store.sweep_workshops(9).unwrap() {}
    store.commit(0).unwrap();
    assert_eq!(store.holder_name(holders[0]).unwrap().as_deref(), Some("ada"));
}

pub fn a_set_that_is_removed_leaves_nothing<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let holders = store.create_holders(&["ada", "bob"]).unwrap();
    store.commit(0).unwrap();
    for (id, holder) in [("a", holders[0]), ("b", holders[1]), ("c", holders[1])] {
        let row = SetRow { holder: Some(holder), ..set(SetState::Confirmed) };
        assert_eq!(save(&mut store, id, None, &row), Saved::Done);
    }
    let found = |ids: Vec<std::sync::Arc<str>>| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    assert_eq!(found(store.list_sets("", 2).unwrap()), ["a", "b"]);
    assert_eq!(found(store.list_sets("b", 2).unwrap()), ["c"]);
    store.begin().unwrap();
    for id in ["a", "b", "none"] {
        store.remove_set(id).unwrap();
    }
    store.commit(0).unwrap();
    assert_eq!(found(store.list_sets("", 9).unwrap()), ["c"]);
    assert_eq!(store.load_holders(&["ada", "bob"]).unwrap(), [None, Some(holders[1])]);
    // Its lines, too: the same id is new.
    let row = SetRow { holder: None, ..set(SetState::Pending) };
    assert_eq!(save(&mut store, "a", None, &row), Saved::Done);
    assert_eq!(load(&mut store, "a"), Some(row));
}
