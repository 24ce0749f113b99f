//! Lives of requests: holds and their ends, waiting lists, holders, logs, listings, deletions.

use std::sync::Arc;

use headcount::store::bookings::{
    Booking, DueLines, DueSeats, Event, EventKind, Filter, HolderKey, Listed, Reason, State, Terms,
};
use headcount::store::reservations::{
    Attempt, AttemptKey, ReservationChanges, Status, Workshop, WorkshopKey,
};
use headcount::store::{Saved, Store};

const NOW_MS: i64 = 1_700_000_000_000;

fn transact<S: Store, T>(store: &mut S, work: impl FnOnce(&mut S) -> T) -> T {
    store.begin().unwrap();
    let done = work(store);
    store.commit(NOW_MS).unwrap();
    done
}

fn create<S: Store>(store: &mut S, names: &[&str]) -> Vec<WorkshopKey> {
    let workshops: Vec<_> =
        names.iter().map(|name| (*name, Workshop { capacity: 100, ..Workshop::default() })).collect();
    transact(store, |store| store.create_workshops(&workshops, NOW_MS).unwrap())
}

fn of(state: State, seats: i64) -> Booking {
    Booking {
        terms: Terms::default(),
        queued: false,
        state,
        seats,
        since_ms: NOW_MS,
        expires_at_ms: None,
        place: None,
        set_ends_at_ms: None,
        set_round: 0,
    }
}

fn held(seats: i64, expires_at_ms: i64) -> Booking {
    Booking { expires_at_ms: Some(expires_at_ms), ..of(State::Held, seats) }
}

fn waiting(seats: i64, place: i64) -> Booking {
    Booking { place: Some(place), queued: true, ..of(State::Waiting, seats) }
}

fn for_holder(holder: HolderKey, booking: Booking) -> Booking {
    Booking { terms: Terms { holder: Some(holder), ..Terms::default() }, ..booking }
}

fn save<S: Store>(store: &mut S, workshop: WorkshopKey, bookings: &[(&str, Booking)]) {
    let bookings =
        bookings.iter().map(|(request, booking)| (AttemptKey { workshop, request }, booking)).collect();
    let changes = ReservationChanges { bookings, ..Default::default() };
    assert_eq!(store.save_reservations(&changes).unwrap(), Saved::Done);
}

fn save_committed<S: Store>(store: &mut S, workshop: WorkshopKey, bookings: &[(&str, Booking)]) {
    transact(store, |store| save(store, workshop, bookings));
}

/// First decisions, with a life or without one.
fn decide<S: Store>(store: &mut S, workshop: WorkshopKey, requests: &[(&str, Option<Booking>)]) {
    let attempt = Attempt {
        seats: 1,
        status: Status::Accepted,
        reserved_after: 1,
        decided_at_ms: NOW_MS,
        reason: None,
    };
    let key = |request| AttemptKey { workshop, request };
    let changes = ReservationChanges {
        attempts: requests.iter().map(|(request, _)| (key(request), attempt)).collect(),
        bookings: requests.iter().filter_map(|(id, booking)| Some((key(id), booking.as_ref()?))).collect(),
        ..Default::default()
    };
    transact(store, |store| assert_eq!(store.save_reservations(&changes).unwrap(), Saved::Done));
}

fn names(found: Vec<(Arc<str>, Booking)>) -> Vec<String> {
    found.into_iter().map(|(request, _)| request.to_string()).collect()
}

pub fn a_life_is_kept_as_saved<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let workshop = create(&mut store, &["a"])[0];
    let holder = transact(&mut store, |store| store.create_holders(&["ada"]).unwrap()[0]);
    let whole = Booking {
        terms: Terms {
            hold: true,
            ttl_ms: Some(7),
            holder: Some(holder),
            waitlist: true,
            of_set: false,
            replaces: Some("other".into()),
        },
        queued: true,
        state: State::Offered,
        seats: 3,
        since_ms: NOW_MS - 5,
        expires_at_ms: Some(NOW_MS + 5),
        place: None,
        set_ends_at_ms: None,
        set_round: 0,
    };
    save_committed(&mut store, workshop, &[("whole", whole.clone()), ("bare", of(State::Accepted, 1))]);
    store.reopen().unwrap();
    let key = |request| AttemptKey { workshop, request };
    let loaded = store.load_bookings(&[key("bare"), key("none"), key("whole")]).unwrap();
    assert_eq!(loaded, [Some(of(State::Accepted, 1)), None, Some(whole.clone())]);
    for state in [State::Confirmed, State::Cancelled, State::Expired, State::Rejected] {
        let next = Booking { state, seats: 2, since_ms: NOW_MS, expires_at_ms: None, ..whole.clone() };
        save_committed(&mut store, workshop, &[("whole", next.clone())]);
        assert_eq!(store.load_bookings(&[key("whole")]).unwrap(), [Some(next)]);
    }
}

pub fn seats_are_due_after_one_time_and_up_to_another<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    save_committed(
        &mut store,
        keys[0],
        &[
            ("one", held(1, 10)),
            ("two", held(2, 20)),
            ("four", Booking { state: State::Offered, ..held(4, 30) }),
            ("never", of(State::Held, 8)),
            ("for-good", of(State::Confirmed, 16)),
        ],
    );
    save_committed(&mut store, keys[1], &[("other", held(32, 15))]);
    let due = |store: &mut S, after, until| {
        let DueSeats { seats, next_at_ms } = store.due_seats(keys[0], after, until).unwrap();
        (seats, next_at_ms)
    };
    assert_eq!(due(&mut store, i64::MIN, 9), (0, Some(10)));
    assert_eq!(due(&mut store, i64::MIN, 10), (1, Some(20)), "due at the very millisecond");
    assert_eq!(due(&mut store, 10, 20), (2, Some(30)), "and not again");
    assert_eq!(due(&mut store, i64::MIN, 30), (7, None));
    assert_eq!(due(&mut store, 30, i64::MAX), (0, None));
    // What was saved before in the same transaction counts.
    transact(&mut store, |store| {
        save(store, keys[0], &[("one", of(State::Expired, 1)), ("new", held(64, 5))]);
        assert_eq!(due(store, i64::MIN, 20), (66, Some(30)));
    });
}

pub fn holds_end_in_the_order_of_their_times<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    save_committed(
        &mut store,
        keys[0],
        &[("third", held(1, 30)), ("first", held(1, 10)), ("second", held(1, 20)), ("late", held(1, 31))],
    );
    save_committed(&mut store, keys[1], &[("other", held(1, 1))]);
    let due = |store: &mut S, now_ms, limit| names(store.due_bookings(keys[0], now_ms, limit).unwrap());
    assert_eq!(due(&mut store, 30, 9), ["first", "second", "third"]);
    assert_eq!(due(&mut store, 30, 2), ["first", "second"]);
    assert_eq!(due(&mut store, 9, 9), [""; 0]);
    let (_, booking) = store.due_bookings(keys[0], 10, 1).unwrap().remove(0);
    assert_eq!(booking, held(1, 10));
}

pub fn lines_whose_sets_have_ended_are_found<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    let line = |set_ends_at_ms| Booking {
        terms: Terms { hold: true, of_set: true, ..Terms::default() },
        set_ends_at_ms,
        set_round: 3,
        ..of(State::Held, 1)
    };
    save_committed(
        &mut store,
        keys[0],
        &[
            ("third", line(Some(30))),
            ("first", line(Some(10))),
            ("second", line(Some(20))),
            ("never", line(None)),
            ("hold", held(1, 5)),
        ],
    );
    save_committed(&mut store, keys[1], &[("other", line(Some(1)))]);
    let due = |store: &mut S, now_ms, limit| {
        let DueLines { requests, next_at_ms } = store.due_lines(keys[0], now_ms, limit).unwrap();
        (requests.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), next_at_ms)
    };
    assert_eq!(due(&mut store, 9, 9), (String::new(), Some(10)));
    assert_eq!(due(&mut store, 20, 9), ("first second".to_owned(), Some(30)), "due at the very millisecond");
    assert_eq!(due(&mut store, 99, 1), ("first".to_owned(), None));
    assert_eq!(due(&mut store, 30, 9).1, None);
    transact(&mut store, |store| {
        let over = Booking { state: State::Expired, ..line(None) };
        save(store, keys[0], &[("first", over.clone()), ("second", line(Some(40)))]);
        assert_eq!(due(store, 35, 9), ("third".to_owned(), Some(40)));
        let key = [AttemptKey { workshop: keys[0], request: "first" }];
        assert_eq!(store.load_bookings(&key).unwrap(), [Some(over)]);
    });
}

pub fn whoever_waits_longest_is_first_among_those_who_fit<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    save_committed(
        &mut store,
        keys[0],
        &[("third", waiting(1, 30)), ("first", waiting(3, 10)), ("second", waiting(2, 20))],
    );
    save_committed(&mut store, keys[1], &[("other", waiting(1, 1))]);
    let first = |store: &mut S, most| {
        store.first_waiter(keys[0], most).unwrap().map(|(request, booking)| (request.to_string(), booking))
    };
    assert_eq!(first(&mut store, i64::MAX), Some(("first".to_owned(), waiting(3, 10))));
    assert_eq!(first(&mut store, 2), Some(("second".to_owned(), waiting(2, 20))));
    assert_eq!(first(&mut store, 1), Some(("third".to_owned(), waiting(1, 30))));
    assert_eq!(first(&mut store, 0), None);
    let before = |store: &mut S, place| store.waiters_before(keys[0], place).unwrap();
    assert_eq!((before(&mut store, 10), before(&mut store, 30), before(&mut store, 99)), (0, 2, 3));
    transact(&mut store, |store| {
        save(store, keys[0], &[("first", held(3, 99))]);
        assert_eq!(first(store, i64::MAX).unwrap().0, "second", "who has an offer waits no more");
        assert_eq!(before(store, 30), 1);
    });
}

pub fn a_holder_has_the_seats_that_it_has_now<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    let holders = transact(&mut store, |store| store.create_holders(&["ada", "bob"]).unwrap());
    let (ada, bob) = (holders[0], holders[1]);
    save_committed(
        &mut store,
        keys[0],
        &[
            ("confirmed", for_holder(ada, of(State::Confirmed, 1))),
            ("held", for_holder(ada, held(2, 20))),
            ("cancelled", for_holder(ada, of(State::Cancelled, 4))),
            ("waiting", for_holder(ada, waiting(8, 1))),
            ("bobs", for_holder(bob, of(State::Accepted, 16))),
            ("nobodys", of(State::Accepted, 32)),
        ],
    );
    save_committed(&mut store, keys[1], &[("elsewhere", for_holder(ada, of(State::Accepted, 64)))]);
    assert_eq!(store.seats_of_holder(keys[0], ada, 19).unwrap(), 3);
    assert_eq!(store.seats_of_holder(keys[0], ada, 20).unwrap(), 1, "a hold that has ended counts no more");
    assert_eq!(store.seats_of_holder(keys[0], bob, 20).unwrap(), 16);
    assert_eq!(store.seats_of_holder(keys[1], bob, 20).unwrap(), 0);
    assert_eq!(store.seats_waited_for(keys[0], ada).unwrap(), 8);
    assert_eq!(store.seats_waited_for(keys[0], bob).unwrap(), 0);
    assert_eq!(store.seats_waited_for(keys[1], ada).unwrap(), 0);
}

pub fn a_name_has_one_surrogate<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.load_holders(&["ada"]).unwrap(), [None]);
    let keys = transact(&mut store, |store| store.create_holders(&["ada", "bob"]).unwrap());
    assert_ne!(keys[0], keys[1]);
    store.reopen().unwrap();
    let loaded = store.load_holders(&["bob", "none", "ada"]).unwrap();
    assert_eq!(loaded, [Some(keys[1]), None, Some(keys[0])]);
    assert_eq!(store.holder_name(keys[1]).unwrap().as_deref(), Some("bob"));
    assert_eq!(store.holder_name(HolderKey(keys[1].0 + 1)).unwrap(), None);
    store.begin().unwrap();
    assert!(store.create_holders(&["ada"]).is_err(), "a second surrogate of a name");
    store.rollback().unwrap();
}

pub fn what_is_due_next_is_known_over_all_workshops<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.next_due_at_ms().unwrap(), None);
    let keys = create(&mut store, &["a", "b", "c"]);
    assert_eq!(store.next_due_at_ms().unwrap(), None);
    save_committed(&mut store, keys[0], &[("late", held(1, 30)), ("never", of(State::Held, 1))]);
    save_committed(&mut store, keys[1], &[("soon", held(1, 20))]);
    assert_eq!(store.next_due_at_ms().unwrap(), Some(20));
    assert_eq!(store.due_workshops(19, 9).unwrap(), [""; 0]);
    assert_eq!(store.due_workshops(20, 9).unwrap(), ["b"]);
    // Waiters may have to be looked at, too.
    let offers = Workshop { capacity: 100, offers_due_at_ms: Some(10), ..Workshop::default() };
    transact(&mut store, |store| store.create_workshops(&[("d", offers)], NOW_MS).unwrap());
    assert_eq!(store.next_due_at_ms().unwrap(), Some(10));
    let mut due = store.due_workshops(30, 9).unwrap();
    due.sort_unstable();
    assert_eq!(due, ["a", "b", "d"]);
    transact(&mut store, |store| store.delete_workshop(keys[2], "c", NOW_MS).unwrap());
    assert!(
        store.next_due_at_ms().unwrap().is_some_and(|at_ms| at_ms <= 10),
        "rows to be swept are due at once"
    );
}

pub fn workshops_are_listed_by_name_a_page_at_a_time<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["c", "a", "b"]);
    let page = |store: &mut S, after, limit| -> Vec<(String, WorkshopKey)> {
        let page = store.list_workshops(after, limit).unwrap();
        page.into_iter().map(|(name, key, _)| (name, key)).collect()
    };
    let [c, a, b] =
        [("c", keys[0]), ("a", keys[1]), ("b", keys[2])].map(|(name, key)| (name.to_owned(), key));
    assert_eq!(page(&mut store, "", 2), [a, b]);
    assert_eq!(page(&mut store, "b", 2), [c]);
    assert_eq!(page(&mut store, "c", 2), []);
}

pub fn requests_are_listed_by_id_as_they_are_at_a_time<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    let holder = transact(&mut store, |store| store.create_holders(&["ada"]).unwrap()[0]);
    decide(
        &mut store,
        keys[0],
        &[
            ("d", None),
            ("a", Some(held(1, 20))),
            ("c", Some(for_holder(holder, held(2, 30)))),
            ("b", Some(for_holder(holder, of(State::Cancelled, 1)))),
        ],
    );
    decide(&mut store, keys[1], &[("other", Some(held(1, 20)))]);
    let mut page = |filter, after: &str, limit| {
        let page = store.list_requests(keys[0], filter, after, limit, 20).unwrap();
        let of = |listed: &Listed| (listed.request.to_string(), listed.state_at(20), listed.holder.clone());
        (page.requests.iter().map(of).collect::<Vec<_>>(), page.next)
    };
    let listed = |id: &str, state, holder: Option<&str>| (id.to_owned(), state, holder.map(str::to_owned));
    let (a, b) = (listed("a", State::Expired, None), listed("b", State::Cancelled, Some("ada")));
    let (c, d) = (listed("c", State::Held, Some("ada")), listed("d", State::Accepted, None));
    let all = Filter::default();
    let (first, next) = page(all, "", 3);
    assert_eq!((first, next.as_deref()), (vec![a.clone(), b.clone(), c.clone()], Some("c")));
    assert_eq!(page(all, "c", 3), (vec![d], None));
    let expired = Filter { state: Some(State::Expired), ..all };
    assert_eq!(page(expired, "", 2), (vec![a], Some("b".to_owned())), "a page is of what was looked at");
    assert_eq!(page(Filter { holder: Some(holder), ..all }, "", 9), (vec![b, c.clone()], None));
    assert_eq!(page(Filter { holder: Some(holder), state: Some(State::Held) }, "", 9), (vec![c], None));
}

pub fn a_log_is_read_in_order_from_anywhere<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    let event = |seq, kind, request: Option<&str>| Event {
        seq,
        at_ms: NOW_MS + seq,
        kind,
        request: request.map(Arc::from),
        seats: seq,
        reserved: 2 * seq,
        reason: (kind == EventKind::Skipped).then_some(Reason::LimitExceeded),
        expires_at_ms: (kind == EventKind::Offered).then_some(NOW_MS + 99),
    };
    let log = [
        event(1, EventKind::Configured, None),
        event(2, EventKind::Waiting, Some("one")),
        event(3, EventKind::Accepted, Some("two")),
        event(4, EventKind::Offered, Some("one")),
        event(5, EventKind::Skipped, Some("three")),
        event(6, EventKind::Confirmed, Some("one")),
    ];
    let elsewhere = event(1, EventKind::Waiting, Some("one"));
    transact(&mut store, |store| {
        let mut events: Vec<_> = log.iter().map(|event| (keys[0], event)).collect();
        events.push((keys[1], &elsewhere));
        // What happens to a request beyond its first decision happens to its life.
        let (one, three) = (of(State::Confirmed, 2), of(State::Rejected, 5));
        let life = |workshop, request| AttemptKey { workshop, request };
        let bookings = vec![
            (life(keys[0], "one"), &one),
            (life(keys[0], "three"), &three),
            (life(keys[1], "one"), &one),
        ];
        let changes = ReservationChanges { events, bookings, ..Default::default() };
        assert_eq!(store.save_reservations(&changes).unwrap(), Saved::Done);
    });
    store.reopen().unwrap();
    assert_eq!(store.events(keys[0], 0, 99).unwrap(), log);
    assert_eq!(store.events(keys[0], 2, 2).unwrap(), log[2..4]);
    assert_eq!(store.events(keys[0], 6, 99).unwrap(), []);
    let of_one = [log[1].clone(), log[3].clone(), log[5].clone()];
    assert_eq!(store.history(keys[0], "one", 99).unwrap(), of_one);
    assert_eq!(store.history(keys[0], "one", 2).unwrap(), of_one[1..], "the newest");
    assert_eq!(store.history(keys[0], "two", 99).unwrap(), [], "its first decision is all of its history");
}

pub fn a_deleted_workshop_leaves_a_tombstone_and_nothing_else<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["gone", "stays"]);
    let holders = transact(&mut store, |store| store.create_holders(&["ada", "bob"]).unwrap());
    let ids: Vec<String> = (0..20).map(|n| format!("request-{n:02}")).collect();
    let of_bob = for_holder(holders[1], held(1, 20));
    let all: Vec<_> = ids.iter().map(|id| (id.as_str(), Some(of_bob.clone()))).collect();
    decide(&mut store, keys[0], &all);
    let of_ada = Some(for_holder(holders[0], of(State::Accepted, 1)));
    decide(&mut store, keys[0], &[("adas", of_ada.clone())]);
    decide(&mut store, keys[1], &[("adas", of_ada)]);

    assert_eq!(store.load_tombstones(&["gone", "stays"]).unwrap(), [None, None]);
    assert_eq!(store.are_there(&keys).unwrap(), [true, true]);
    transact(&mut store, |store| store.delete_workshop(keys[0], "gone", NOW_MS + 7).unwrap());
    store.reopen().unwrap();
    assert_eq!(store.load_workshops(&["gone"]).unwrap(), [None]);
    assert_eq!(store.are_there(&[keys[1], keys[0]]).unwrap(), [true, false]);
    assert_eq!(store.load_tombstones(&["stays", "gone"]).unwrap(), [None, Some(NOW_MS + 7)]);
    let mut chunks = 0;
    while transact(&mut store, |store| store.sweep_workshops(6).unwrap()) {
        chunks += 1;
        assert!(chunks < 99, "the sweep has no end");
    }
    assert!(chunks >= 4, "at most so many rows at a time: {chunks}");
    let key = |workshop, request| AttemptKey { workshop, request };
    assert_eq!(
        store.load_attempts(&[key(keys[0], "request-00"), key(keys[0], "adas")]).unwrap(),
        [None, None]
    );
    assert_eq!(store.load_bookings(&[key(keys[0], "request-00")]).unwrap(), [None]);
    assert_eq!(store.next_due_at_ms().unwrap(), None);
    assert!(store.load_attempts(&[key(keys[1], "adas")]).unwrap()[0].is_some());
    assert_eq!(
        store.load_holders(&["ada", "bob"]).unwrap(),
        [Some(holders[0]), None],
        "a name goes with the last booking that it stands behind"
    );

    transact(&mut store, |store| store.remove_tombstone("gone").unwrap());
    assert_eq!(store.load_tombstones(&["gone"]).unwrap(), [None]);
    assert_ne!(create(&mut store, &["gone"])[0], keys[0], "a key never comes back");
}

pub fn tombstones_can_all_be_taken_away<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b", "c"]);
    for (key, name) in keys.iter().zip(["a", "b", "c"]) {
        transact(&mut store, |store| store.delete_workshop(*key, name, NOW_MS).unwrap());
    }
    let left = |store: &mut S| store.load_tombstones(&["a", "b", "c"]).unwrap().into_iter().flatten().count();
    assert!(transact(&mut store, |store| store.remove_tombstones(2).unwrap()));
    assert_eq!(left(&mut store), 1);
    assert!(transact(&mut store, |store| store.remove_tombstones(2).unwrap()));
    assert!(!transact(&mut store, |store| store.remove_tombstones(2).unwrap()));
    assert_eq!(left(&mut store), 0);
}

pub fn each_workshop_with_holds_has_its_turn<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b", "c", "d", "none"]);
    let ids: Vec<String> = (0..20).map(|n| format!("held-{n:02}")).collect();
    let many: Vec<_> = ids.iter().map(|id| (id.as_str(), held(1, 10))).collect();
    save_committed(&mut store, keys[0], &many);
    for (key, ends_at_ms) in [(keys[1], 30), (keys[2], 20), (keys[3], 15)] {
        save_committed(&mut store, key, &[("held", held(1, ends_at_ms)), ("never", of(State::Held, 1))]);
    }
    let row = |place: usize, name: &str, is_due| (keys[place], name.to_owned(), is_due);
    let first = WorkshopKey(i64::MIN);
    let all = [row(0, "a", true), row(1, "b", false), row(2, "c", true), row(3, "d", true)];
    assert_eq!(store.holding_workshops(first, 20, 9).unwrap(), all);
    assert_eq!(store.holding_workshops(first, 20, 2).unwrap(), all[..2]);
    assert_eq!(store.holding_workshops(keys[1], 20, 2).unwrap(), all[2..]);
    assert_eq!(store.holding_workshops(keys[3], 20, 2).unwrap(), []);
    assert!(store.holding_workshops(first, 9, 9).unwrap().iter().all(|(_, _, is_due)| !is_due));
}
