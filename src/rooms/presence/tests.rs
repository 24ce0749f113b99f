use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TIMES: Times = Times { idle_ms: 300_000, grace_ms: 15_000 };

fn user(name: &str) -> UserId {
    UserId::parse(name, 128).unwrap()
}

const fn connection(number: u64) -> ConnectionId {
    ConnectionId(number)
}

/// Every connection was last heard of at this time.
fn all_seen(seen_ms: i64) -> impl Fn(ConnectionId) -> Option<i64> {
    move |_| Some(seen_ms)
}

#[test]
fn a_join_is_one_session_however_often_it_is_repeated() {
    let mut presence = Presence::default();
    assert_eq!(presence.join(&user("ada"), None, 0), Change::Joined);
    assert_eq!(presence.join(&user("ada"), None, 1), Change::None);
    assert_eq!(presence.leave(&user("ada"), false), (Change::Left, vec![]));
    assert_eq!(presence.leave(&user("ada"), false), (Change::None, vec![]));
    assert_eq!(presence.online(), 0);
}

#[test]
fn five_minutes_without_activity_is_offline() {
    let mut presence = Presence::default();
    presence.join(&user("ada"), None, 1_000);
    assert_eq!(presence.next_due_ms(TIMES, all_seen(0)), Some(301_000));
    assert_eq!(presence.expire(300_999, TIMES, all_seen(0)), Expired::default());
    assert_eq!(presence.expire(301_000, TIMES, all_seen(0)).left, [user("ada")]);
    assert_eq!(presence.next_due_ms(TIMES, all_seen(0)), None);
}

#[test]
fn sending_refreshes_a_session_and_never_makes_one() {
    let mut presence = Presence::default();
    presence.join(&user("ada"), None, 0);
    presence.refresh(&user("ada"), 200_000);
    presence.refresh(&user("bob"), 200_000);
    assert_eq!(presence.online(), 1);
    assert_eq!(presence.expire(300_000, TIMES, all_seen(0)), Expired::default());
    assert_eq!(presence.expire(500_000, TIMES, all_seen(0)).left, [user("ada")]);
}

#[test]
fn a_silent_connection_expires_and_an_active_one_does_not() {
    let mut presence = Presence::default();
    presence.connect(&user("ada"), connection(1));
    presence.connect(&user("bob"), connection(2));
    let seen = |of: ConnectionId| Some(if of == connection(1) { 0 } else { 250_000 });
    let expired = presence.expire(300_000, TIMES, seen);
    assert_eq!(expired, Expired { left: vec![user("ada")], connections: vec![connection(1)] });
    assert_eq!(presence.next_due_ms(TIMES, seen), Some(550_000));
}

#[test]
fn a_lost_connection_is_waited_for_and_a_clean_one_is_not() {
    let mut presence = Presence::default();
    presence.connect(&user("ada"), connection(1));
    assert_eq!(presence.disconnect(&user("ada"), connection(1), End::Lost, 100, TIMES), Change::None);
    assert!(presence.is_online(&user("ada")));
    assert_eq!(presence.expire(15_099, TIMES, all_seen(0)), Expired::default());
    assert_eq!(presence.expire(15_100, TIMES, all_seen(0)).left, [user("ada")]);

    presence.connect(&user("ada"), connection(2));
    assert_eq!(presence.disconnect(&user("ada"), connection(2), End::Clean, 100, TIMES), Change::Left);
}

#[test]
fn who_comes_back_in_time_never_left() {
    let mut presence = Presence::default();
    presence.connect(&user("ada"), connection(1));
    presence.disconnect(&user("ada"), connection(1), End::Lost, 0, TIMES);
    assert_eq!(presence.connect(&user("ada"), connection(2)), Change::None);
    // What was lost is back: a clean goodbye now is one.
    assert_eq!(presence.disconnect(&user("ada"), connection(2), End::Clean, 1, TIMES), Change::Left);
}

#[test]
fn two_lost_and_one_back_is_still_waited_for() {
    let mut presence = Presence::default();
    presence.connect(&user("ada"), connection(1));
    presence.connect(&user("ada"), connection(2));
    presence.disconnect(&user("ada"), connection(1), End::Lost, 0, TIMES);
    presence.disconnect(&user("ada"), connection(2), End::Lost, 5, TIMES);
    presence.connect(&user("ada"), connection(3));
    assert_eq!(presence.disconnect(&user("ada"), connection(3), End::Clean, 9, TIMES), Change::None);
    assert_eq!(presence.expire(15_005, TIMES, all_seen(0)).left, [user("ada")]);
}

/// M16: one user, two tabs, closes one.
#[test]
fn a_tab_closed_is_no_leave() {
    let mut presence = Presence::default();
    assert_eq!(presence.connect(&user("ada"), connection(1)), Change::Joined);
    assert_eq!(presence.connect(&user("ada"), connection(2)), Change::None);
    assert_eq!(presence.disconnect(&user("ada"), connection(1), End::Clean, 0, TIMES), Change::None);
    assert_eq!(presence.online(), 1);
}

#[test]
fn a_leave_keeps_connections_unless_all() {
    let mut presence = Presence::default();
    presence.join(&user("ada"), None, 0);
    presence.connect(&user("ada"), connection(1));
    assert_eq!(presence.leave(&user("ada"), false), (Change::None, vec![]));
    assert_eq!(presence.leave(&user("ada"), true), (Change::Left, vec![connection(1)]));
    // The socket's own end, later, is nothing new.
    assert_eq!(presence.disconnect(&user("ada"), connection(1), End::Lost, 0, TIMES), Change::None);
    assert_eq!(presence.online(), 0);
}

#[test]
fn the_last_meta_wins_and_goes_with_its_user() {
    let meta = |text: &str| Meta(text.into());
    let mut presence = Presence::default();
    assert!(!presence.update(&user("ada"), meta("1")), "not online");
    presence.join(&user("ada"), Some(meta("1")), 0);
    presence.connect(&user("ada"), connection(1));
    assert!(presence.update(&user("ada"), meta("2")));
    assert_eq!(presence.members().next().unwrap().1, Some(&meta("2")));
    presence.leave(&user("ada"), true);
    presence.join(&user("ada"), None, 0);
    assert_eq!(presence.members().next().unwrap().1, None);
}

/// What happens to a few users and connections.
#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Connect(u8),
    Leave(u8, bool),
    End(u64, bool),
    Send(u8),
    Stir(u64),
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8).prop_map(Step::Join),
        (0..3_u8).prop_map(Step::Connect),
        (0..3_u8, any::<bool>()).prop_map(|(user, all)| Step::Leave(user, all)),
        (0..12_u64, any::<bool>()).prop_map(|(connection, lost)| Step::End(connection, lost)),
        (0..3_u8).prop_map(Step::Send),
        (0..12_u64).prop_map(Step::Stir),
        (1..200_000_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

/// The naive model: a list of reasons to be online, looked through every time.
#[derive(Debug, Default)]
struct Model {
    sessions: BTreeMap<u8, i64>,
    open: BTreeMap<u64, (u8, i64)>,
    lost: Vec<(u8, i64)>,
}

impl Model {
    fn online(&self) -> Vec<u8> {
        let sessions = self.sessions.keys().copied();
        let mut users: Vec<u8> = sessions
            .chain(self.open.values().map(|open| open.0))
            .chain(self.lost.iter().map(|l| l.0))
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    fn expire(&mut self, now: i64) {
        self.sessions.retain(|_, seen| now < *seen + TIMES.idle_ms);
        self.open.retain(|_, (_, seen)| now < *seen + TIMES.idle_ms);
        self.lost.retain(|(_, until)| now < *until);
    }
}

proptest! {
    /// Joins and leaves told, added up, are who is online; and nobody is due before it is said.
    #[test]
    fn events_add_up_to_who_is_online(steps in steps()) {
        let name = |number: u8| user(&format!("user-{number}"));
        let (mut presence, mut model) = (Presence::default(), Model::default());
        let mut told: BTreeMap<UserId, bool> = BTreeMap::new();
        let mut seen: BTreeMap<u64, i64> = BTreeMap::new();
        let (mut now, mut next) = (0_i64, 0_u64);
        let mut tell = |user: &UserId, change: Change| match change {
            Change::Joined => assert!(!told.insert(user.clone(), true).unwrap_or(false), "joined twice"),
            Change::Left => assert_eq!(told.insert(user.clone(), false), Some(true), "left twice"),
            Change::None => {}
        };
        for step in steps {
            match step {
                Step::Join(u) => {
                    tell(&name(u), presence.join(&name(u), None, now));
                    model.sessions.insert(u, now);
                }
                Step::Connect(u) => {
                    tell(&name(u), presence.connect(&name(u), connection(next)));
                    if let Some(back) = model.lost.iter().position(|lost| lost.0 == u) {
                        model.lost.remove(back);
                    }
                    model.open.insert(next, (u, now));
                    seen.insert(next, now);
                    next += 1;
                }
                Step::Leave(u, all) => {
                    tell(&name(u), presence.leave(&name(u), all).0);
                    model.sessions.remove(&u);
                    model.lost.retain(|lost| lost.0 != u);
                    if all { model.open.retain(|_, open| open.0 != u); }
                }
                Step::End(c, lost) => {
                    let end = if lost { End::Lost } else { End::Clean };
                    if let Some((u, _)) = model.open.remove(&c) {
                        tell(&name(u), presence.disconnect(&name(u), connection(c), end, now, TIMES));
                        if lost { model.lost.push((u, now + TIMES.grace_ms)); }
                    }
                }
                Step::Send(u) => {
                    presence.refresh(&name(u), now);
                    model.sessions.entry(u).and_modify(|seen| *seen = now);
                }
                Step::Stir(c) => {
                    seen.entry(c).and_modify(|seen| *seen = now);
                    if let Some(open) = model.open.get_mut(&c) { open.1 = now; }
                }
                Step::Wait(ms) => {
                    let seen_ms = |c: ConnectionId| seen.get(&c.0).copied();
                    let due = presence.next_due_ms(TIMES, seen_ms);
                    now += ms;
                    let expired = presence.expire(now, TIMES, seen_ms);
                    // Nothing ends before it is due, and nothing that was due is left over. (What ends need not
                    // show: a session of a user who has a socket, too.)
                    prop_assert!(expired == Expired::default() || due.is_some_and(|due| due <= now));
                    prop_assert!(presence.next_due_ms(TIMES, seen_ms).is_none_or(|due| due > now));
                    expired.left.iter().for_each(|user| tell(user, Change::Left));
                    model.expire(now);
                }
            }
            let mut online: Vec<UserId> = presence.members().map(|(user, _)| user.clone()).collect();
            online.sort_unstable();
            prop_assert_eq!(online, model.online().into_iter().map(name).collect::<Vec<_>>());
        }
    }
}
