//! Workshops and attempts.

use headcount::store::bookings::Reason;
use headcount::store::reservations::{
    Attempt, AttemptKey, Policy, ReservationChanges, Rules, Status, Waitlist, Workshop, WorkshopChange,
    WorkshopKey,
};
use headcount::store::{Saved, Store};

const NOW_MS: i64 = 1_700_000_000_000;

fn empty(capacity: i64) -> Workshop {
    Workshop { capacity, ..Workshop::default() }
}

fn create<S: Store>(store: &mut S, workshops: &[(&str, Workshop)]) -> Vec<WorkshopKey> {
    store.begin().unwrap();
    let keys = store.create_workshops(workshops, NOW_MS).unwrap();
    store.commit(NOW_MS).unwrap();
    keys
}

fn save<S: Store>(store: &mut S, changes: &ReservationChanges<'_>) -> Saved {
    store.begin().unwrap();
    let saved = store.save_reservations(changes).unwrap();
    match saved {
        Saved::Done => {
            store.commit(NOW_MS).unwrap();
        }
        Saved::Conflict => store.rollback().unwrap(),
    }
    saved
}

fn change(key: WorkshopKey, before: Workshop, after: Workshop) -> ReservationChanges<'static> {
    ReservationChanges { workshops: vec![WorkshopChange { key, before, after }], ..Default::default() }
}

fn attempt(status: Status) -> Attempt {
    Attempt { seats: 3, status, reserved_after: 3, decided_at_ms: NOW_MS, reason: None }
}

pub fn a_workshop_is_created_once_and_found_by_name<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [None]);
    let whole = Workshop {
        capacity: 5,
        reserved: 6,
        overbooked: 1,
        accepted_requests: 2,
        rejected_requests: 4,
        accepted_seats: 7,
        version: 9,
        held: 3,
        waiting: 2,
        last_event: 11,
        rules: Rules {
            max_seats_per_request: Some(3),
            max_seats_per_holder: Some(4),
            hold_ttl_ms: Some(5),
            waitlist: Some(Waitlist { policy: Policy::FitFirst, offer_ttl_ms: 6, max_length: 7 }),
            opens_at_ms: Some(8),
            closes_at_ms: Some(9),
        },
        rules_version: 12,
        offers_due_at_ms: Some(13),
    };
    let key = create(&mut store, &[("a", whole)])[0];
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [Some((key, whole))]);
    store.begin().unwrap();
    assert!(store.create_workshops(&[("a", empty(1))], NOW_MS).is_err(), "a second workshop of a name");
    store.rollback().unwrap();
    store.reopen().unwrap();
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [Some((key, whole))]);
}

pub fn answers_stand_in_the_order_of_the_question<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &[("a", empty(1)), ("b", empty(2))]);
    assert_ne!(keys[0], keys[1]);
    let loaded = store.load_workshops(&["b", "missing", "a"]).unwrap();
    assert_eq!(loaded, [Some((keys[1], empty(2))), None, Some((keys[0], empty(1)))]);
    let key = |workshop, request| AttemptKey { workshop, request };
    let (accepted, rejected) = (attempt(Status::Accepted), attempt(Status::Rejected));
    let attempts = vec![(key(keys[0], "one"), accepted), (key(keys[1], "one"), rejected)];
    assert_eq!(save(&mut store, &ReservationChanges { attempts, ..Default::default() }), Saved::Done);
    let loaded =
        store.load_attempts(&[key(keys[1], "one"), key(keys[0], "two"), key(keys[0], "one")]).unwrap();
    assert_eq!(loaded, [Some(rejected), None, Some(accepted)], "an id is a workshop's own");
}

pub fn an_attempt_is_kept_as_decided<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let workshop = create(&mut store, &[("a", empty(4))])[0];
    for (request, status) in [("yes", Status::Accepted), ("no", Status::Rejected)] {
        let reason = Some(Reason::SaleClosed).filter(|_| status == Status::Rejected);
        let decided = Attempt { seats: 2, status, reserved_after: 4, decided_at_ms: NOW_MS + 17, reason };
        let key = AttemptKey { workshop, request };
        let changes = ReservationChanges { attempts: vec![(key, decided)], ..Default::default() };
        assert_eq!(save(&mut store, &changes), Saved::Done);
        store.reopen().unwrap();
        assert_eq!(store.load_attempts(&[key]).unwrap(), [Some(decided)]);
    }
}

pub fn a_workshop_that_changed_meanwhile_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let key = create(&mut store, &[("a", empty(4))])[0];
    let taken = Workshop { reserved: 3, accepted_requests: 1, accepted_seats: 3, version: 1, ..empty(4) };
    assert_eq!(save(&mut store, &change(key, empty(4), taken)), Saved::Done);
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [Some((key, taken))]);
    let stale = Workshop { reserved: 2, version: 1, ..empty(4) };
    assert_eq!(save(&mut store, &change(key, empty(4), stale)), Saved::Conflict);
    assert_eq!(
        save(&mut store, &change(WorkshopKey(key.0 + 1), empty(4), stale)),
        Saved::Conflict,
        "no such row"
    );
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [Some((key, taken))]);
    // What saved beside it in the same call is not there either.
    let attempts = vec![(AttemptKey { workshop: key, request: "one" }, attempt(Status::Accepted))];
    assert_eq!(
        save(&mut store, &ReservationChanges { attempts, ..change(key, empty(4), stale) }),
        Saved::Conflict
    );
    assert_eq!(store.load_attempts(&[AttemptKey { workshop: key, request: "one" }]).unwrap(), [None]);
}

pub fn an_attempt_that_is_there_already_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let workshop = create(&mut store, &[("a", empty(4))])[0];
    let key = AttemptKey { workshop, request: "one" };
    let first = attempt(Status::Accepted);
    let with = |attempt| ReservationChanges { attempts: vec![(key, attempt)], ..Default::default() };
    assert_eq!(save(&mut store, &with(first)), Saved::Done);
    assert_eq!(save(&mut store, &with(attempt(Status::Rejected))), Saved::Conflict);
    assert_eq!(store.load_attempts(&[key]).unwrap(), [Some(first)], "the first decision stays");
}

/// The last line of defence: the store itself refuses what the deciding code must never ask for.
pub fn a_seat_too_many_is_refused<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let key = create(&mut store, &[("a", empty(4))])[0];
    for reserved in [5, -1] {
        store.begin().unwrap();
        let after = Workshop { reserved, version: 1, ..empty(4) };
        assert!(store.save_reservations(&change(key, empty(4), after)).is_err(), "{reserved} of 4");
        store.rollback().unwrap();
    }
    assert_eq!(store.load_workshops(&["a"]).unwrap(), [Some((key, empty(4)))]);
    let forced = Workshop { capacity: 2, reserved: 4, overbooked: 2, version: 1, ..empty(4) };
    assert_eq!(save(&mut store, &change(key, empty(4), forced)), Saved::Done, "overbooked on purpose");
}
