//! What clients of one data directory were told, and whether it is still true.
//!
//! [`Caller`]s like, unlike, add to counters, reserve, hold, wait, take seats of several workshops, confirm and cancel at random, all at once, and note every answer. Each pair of user
//! and item, and each request id, has one caller, so its last acknowledged state is known; an item has
//! all of them, and so has a workshop. A request without an answer may have either outcome, until it is
//! looked up. The history outlives the service that it is loaded onto.

mod adds;
mod bookings;
mod caller;
mod requests;
mod rng;
mod sets;
mod whereabouts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use headcount::store::bookings::State;

use crate::client::{Answer, Client};
use crate::service::{Service, Setup};
pub use adds::COUNTERS;
use bookings::{Booking, Listed};
use caller::{Caller, Workshops};
use requests::Request;
pub use rng::Rng;
use sets::SeatSet;
use whereabouts::Whereabouts;

const CALLERS: usize = 8;
const ITEMS: [&str; 5] = ["post", "photo", "song", "film", "book"];
const USERS: usize = 40;
const WORKSHOPS_PER_ROUND: usize = 4;
const BOOKED_PER_ROUND: usize = 3;

/// How long the sums of a workshop may take to come right: the clock ends holds, and the offers that follow are written
/// a little later. Never how long they are expected to take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Seats of every workshop: enough that a round fills some and not all.
const CAPACITY: i64 = 60;

/// The service for a history. Its log is brought into the file and its actors leave memory all the time,
/// so that whatever happens in a round meets that, too.
pub fn setup() -> Setup {
    Setup::new()
        .with("reservations.default_capacity", CAPACITY)
        .with("sqlite.wal_autocheckpoint_pages", 100)
        // Few enough that what is journaled moves into its tables all the time.
        .with("sqlite.pending_rows", 40)
        .with("actors.max_resident", 16)
}

/// See the module.
pub struct History {
    callers: Vec<Caller>,
    /// For whatever else is to be left to chance.
    pub rng: Rng,
    round: usize,
}

/// Which of the answered reservations are asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// Those of the last round, and some older ones.
    Recent,
    All,
    /// All of those and nothing else, so that nothing new is stored.
    DecidedOnly,
}

impl History {
    /// Nobody has asked for anything yet. The same seed makes the same callers ask for the same things.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let callers = (0..CALLERS).map(|number| Caller::new(number, Rng::new(rng.next()))).collect();
        Self { callers, rng, round: 0 }
    }

    /// Every caller takes `steps` steps, all callers at once; returns the refusals they met, by word.
    pub async fn load(&mut self, client: &Client, steps: u64) -> BTreeMap<String, u64> {
        let running = self.set_going(client, steps, &Arc::default());
        self.collect(running).await;
        let mut refusals = BTreeMap::new();
        for (word, times) in self.callers.iter_mut().flat_map(|caller| std::mem::take(&mut caller.refusals)) {
            *refusals.entry(word).or_default() += times;
        }
        refusals
    }

    /// Sets all callers going and kills the service once they have got `answers` answers, at whatever
    /// point each of them and each partition is just then.
    pub async fn kill_under_load(&mut self, service: Service, answers: u64) {
        let heard = Arc::new(AtomicU64::new(0));
        let running = self.set_going(&service.client, u64::MAX, &heard);
        while heard.load(Ordering::Relaxed) < answers && !running.iter().any(|caller| caller.is_finished()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let phase = Duration::from_micros(self.rng.below(3000));
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(phase);
            service.kill();
        })
        .await
        .unwrap();
        self.collect(running).await;
    }

    fn set_going(&mut self, client: &Client, steps: u64, heard: &Arc<AtomicU64>) -> Vec<Running> {
        self.round += 1;
        let round = self.round;
        let workshops = Workshops {
            plain: (0..WORKSHOPS_PER_ROUND).map(|n| format!("round-{round}-{n}")).collect(),
            booked: (0..BOOKED_PER_ROUND).map(|n| format!("booked-{round}-{n}")).collect(),
        };
        let go = |mut caller: Caller| {
            let (client, workshops, heard) = (client.clone(), workshops.clone(), Arc::clone(heard));
            tokio::spawn(async move {
                let mut left = steps;
                while left > 0 && caller.step(&client, &workshops).await {
                    heard.fetch_add(1, Ordering::Relaxed);
                    left -= 1;
                }
                caller
            })
        };
        self.callers.drain(..).map(go).collect()
    }

    async fn collect(&mut self, running: Vec<Running>) {
        for caller in running {
            self.callers.push(caller.await.unwrap());
        }
    }

    /// Looks up everything that was ever answered or asked, with nobody else asking meanwhile; returns
    /// what contradicts it. Afterwards everything is known, and it is what the service says now.
    pub async fn contradictions(&mut self, client: &Client, replay: Replay) -> Vec<String> {
        let likes = self.look_up_likes(client).await;
        let round = format!("round-{}-", self.round);
        join_all(self.callers.iter_mut().map(|caller| caller.ask_again(client, replay, &round))).await;
        let mut found: Vec<String> =
            self.callers.iter_mut().flat_map(|caller| std::mem::take(&mut caller.contradictions)).collect();
        found.extend(likes);
        if replay != Replay::DecidedOnly {
            found.extend(self.check_counters(client).await);
            found.extend(self.check_workshops(client).await);
            found.extend(self.look_up_sets(client, replay).await);
            found.extend(self.look_up_bookings(client, replay).await);
        }
        found
    }

    /// Panics if anything contradicts what was answered.
    pub async fn assert_kept(&mut self, client: &Client, replay: Replay) {
        let found = self.contradictions(client, replay).await;
        assert!(found.is_empty(), "{} contradictions, {}:\n{}", found.len(), self.rng, found.join("\n"));
    }

    /// Likes alone: every membership, and every exact total against the members.
    async fn look_up_likes(&mut self, client: &Client) -> Vec<String> {
        let items = ITEMS.map(|item| format!("item={item}")).join("&");
        let users: Vec<String> = (0..USERS).map(user).collect();
        let ask = |user: &String| read(client, format!("/likes?{items}&user={user}"));
        let answers = join_all(users.iter().map(ask)).await;
        let mut liked = BTreeMap::new();
        for (user, answer) in users.iter().zip(&answers) {
            for (item, told) in ITEMS.iter().zip(answer.json["items"].as_array().unwrap()) {
                liked.insert((user.clone(), *item), told["liked"].as_bool().unwrap());
            }
        }
        let settle = |caller: &mut Caller| caller.settle_likes(&liked);
        let mut found: Vec<String> = self.callers.iter_mut().flat_map(settle).collect();
        let totals = read(client, format!("/likes?{items}&exact=true")).await;
        for (item, told) in ITEMS.iter().zip(totals.json["items"].as_array().unwrap()) {
            let members = liked.iter().filter(|((_, of), liked)| of == item && **liked).count();
            if told["total"] != members {
                found.push(format!("{item} has {members} members and a total of {}", told["total"]));
            }
        }
        found
    }

    /// The exact totals, from what is known, once everything is.
    pub fn totals(&self) -> BTreeMap<&'static str, i64> {
        let likers = |item| self.callers.iter().map(|caller| caller.likers_of(item)).sum();
        ITEMS.iter().map(|item| (*item, likers(item))).collect()
    }

    /// Each counter's exact total against the adds that were done, once all of them are known.
    async fn check_counters(&self, client: &Client) -> Vec<String> {
        let mut found = Vec::new();
        for counter in adds::COUNTERS {
            let told = read(client, format!("/counters/{counter}?exact=true")).await.json;
            let done = self.callers.iter().flat_map(|caller| &caller.adds);
            let done = done.filter(|add| add.counter == counter && add.is_done());
            let sum: i64 = done.map(|add| add.amount).sum();
            if told["total"] != sum {
                found.push(format!("{counter} says {}, its adds are {sum}", told["total"]));
            }
        }
        found
    }

    /// Each workshop's status against the decisions that make it up.
    async fn check_workshops(&self, client: &Client) -> Vec<String> {
        let mut workshops: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
        for request in self.callers.iter().flat_map(|caller| &caller.requests) {
            workshops.entry(&request.workshop).or_default().push(request);
        }
        let mut found = Vec::new();
        for (workshop, requests) in workshops {
            let told = read(client, format!("/workshops/{workshop}/status")).await.json;
            found.extend(requests::check_workshop(workshop, &requests, &told));
        }
        found
    }

    /// Bookings alone: every first decision that `replay` says, every state, and every workshop against its bookings.
    async fn look_up_bookings(&mut self, client: &Client, replay: Replay) -> Vec<String> {
        let round = format!("booked-{}-", self.round);
        let callers = self.callers.iter_mut();
        join_all(callers.map(|caller| caller.ask_again_for_bookings(client, replay, &round))).await;
        let mut found: Vec<String> =
            self.callers.iter_mut().flat_map(|caller| std::mem::take(&mut caller.contradictions)).collect();
        let mut workshops: Vec<String> = self.bookings().map(|booking| booking.workshop.clone()).collect();
        workshops.sort_unstable();
        workshops.dedup();
        if replay == Replay::Recent {
            workshops.retain(|workshop| workshop.starts_with(&round));
        }
        for workshop in workshops {
            found.extend(self.check_booked(client, &workshop).await);
        }
        found
    }

    /// Sets alone: every first decision that `replay` says, every state, and every line against its set.
    async fn look_up_sets(&mut self, client: &Client, replay: Replay) -> Vec<String> {
        let round = format!("booked-{}-", self.round);
        let callers = self.callers.iter_mut();
        join_all(callers.map(|caller| caller.ask_again_for_sets(client, replay, &round))).await;
        let mut found: Vec<String> =
            self.callers.iter_mut().flat_map(|caller| std::mem::take(&mut caller.contradictions)).collect();
        let started = Instant::now();
        loop {
            let mut wrong = Vec::new();
            let mut listed: BTreeMap<String, BTreeMap<String, Listed>> = BTreeMap::new();
            for set in self.callers.iter_mut().flat_map(|caller| &mut caller.sets) {
                let recent = set.lines.keys().any(|workshop| workshop.starts_with(&round));
                if replay == Replay::Recent && !recent {
                    continue;
                }
                let told = read(client, set.path()).await.json;
                match State::parse(told["state"].as_str().unwrap()) {
                    Some(state) => found.extend(set.found(state)),
                    None => wrong.push(format!("{set}: {told}")),
                }
                for workshop in set.lines.keys() {
                    if !listed.contains_key(workshop) {
                        listed.insert(workshop.clone(), list(client, workshop).await);
                    }
                    wrong.extend(set.check_line(workshop, listed[workshop].get(&set.id)));
                }
            }
            if wrong.is_empty() || !found.is_empty() || started.elapsed() > PATIENCE {
                found.extend(wrong);
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn check_booked(&mut self, client: &Client, workshop: &str) -> Vec<String> {
        let started = Instant::now();
        loop {
            let listed = list(client, workshop).await;
            let settle = |caller: &mut Caller| caller.settle_bookings(workshop, &listed);
            let mut found: Vec<String> = self.callers.iter_mut().flat_map(settle).collect();
            let told = read(client, format!("/workshops/{workshop}/status")).await.json;
            let all: Vec<&Booking> = self.bookings().filter(|booking| booking.workshop == workshop).collect();
            let lines: Vec<Listed> = listed.values().copied().filter(|listed| listed.part_of_set).collect();
            let sums = bookings::check_booked(workshop, &all, &lines, &told);
            if !found.is_empty() || sums.is_empty() || started.elapsed() > PATIENCE {
                found.extend(sums);
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn bookings(&self) -> impl Iterator<Item = &Booking> {
        self.callers.iter().flat_map(|caller| &caller.bookings)
    }

    /// How many bookings were last known to be in each state.
    pub fn states(&self) -> BTreeMap<&'static str, u64> {
        counted(self.bookings().filter_map(Booking::state))
    }

    /// How many sets were.
    pub fn set_states(&self) -> BTreeMap<&'static str, u64> {
        counted(self.callers.iter().flat_map(|caller| &caller.sets).filter_map(SeatSet::state))
    }
}

fn counted(states: impl Iterator<Item = State>) -> BTreeMap<&'static str, u64> {
    let mut counted = BTreeMap::new();
    for state in states {
        *counted.entry(state.as_str()).or_default() += 1;
    }
    counted
}

/// Every request of a workshop and where it is.
async fn list(client: &Client, workshop: &str) -> BTreeMap<String, Listed> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = read(client, format!("/workshops/{workshop}/reservations?limit=200{cursor}")).await.json;
        for listed in page["reservations"].as_array().unwrap() {
            let [id, state, status] =
                ["requestId", "state", "status"].map(|field| listed[field].as_str().unwrap());
            let [state, status] = [state, status].map(|word| State::parse(word).unwrap());
            let (seats, part_of_set) =
                (listed["seats"].as_i64().unwrap(), listed["partOfSet"].as_bool() == Some(true));
            all.insert(id.to_owned(), Listed { state, status, seats, part_of_set });
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

type Running = tokio::task::JoinHandle<Caller>;

fn user(number: usize) -> String {
    format!("user-{number}")
}

/// A read that is repeated while a partition is down: a failing one comes back.
async fn read(client: &Client, path: String) -> Answer {
    until_answered(async || client.get(&path).await).await
}

async fn until_answered(ask: impl AsyncFn() -> Answer) -> Answer {
    let mut answer = ask().await;
    for _ in 0..1000 {
        if answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        answer = ask().await;
    }
    panic!("again and again: {answer:?}");
}
