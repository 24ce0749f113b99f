//! One client: does something at random, waits for the answer, notes it, goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::adds::Add;
use super::bookings::{self, Booking, Change, Listed};
use super::requests::{Known, Request};
use super::sets::{SeatSet, SetChange};
use super::whereabouts::Whereabouts;
use super::{CALLERS, ITEMS, Replay, Rng, USERS, until_answered, user};
use crate::client::{Answer, Client};

/// Older decisions that are asked for again after each round.
const OLDER_REPLAYS: usize = 25;

/// The latest bookings of a caller, which it confirms and cancels.
const IN_HAND: u64 = 12;

pub struct Caller {
    number: usize,
    rng: Rng,
    pairs: Vec<Pair>,
    pub requests: Vec<Request>,
    pub adds: Vec<Add>,
    pub bookings: Vec<Booking>,
    pub sets: Vec<SeatSet>,
    /// Workshops that it knows to be set up for bookings.
    configured: BTreeSet<String>,
    /// Answers that contradict what was known, in words.
    pub contradictions: Vec<String>,
    /// Problems met, by word.
    pub refusals: BTreeMap<String, u64>,
}

/// Where a round's requests go.
#[derive(Clone)]
pub struct Workshops {
    /// For seats and nothing else.
    pub plain: Vec<String>,
    /// For holds and waiting.
    pub booked: Vec<String>,
}

/// A user and an item that this caller alone brings together and apart.
struct Pair {
    user: String,
    item: &'static str,
    /// `None` while a request for something else was not answered.
    liked: Option<bool>,
}

/// What came back.
enum Heard {
    Answer(Answer),
    SurelyNotDone,
    PerhapsDone,
    /// Nothing: the service is gone.
    Nothing,
}

impl Caller {
    /// Nobody likes anything yet. Users and items are spread so that callers meet on both.
    pub fn new(number: usize, rng: Rng) -> Self {
        let all = (0..USERS).flat_map(|user| (0..ITEMS.len()).map(move |item| (user, item)));
        let mine = all.filter(|(user, item)| (user + item) % CALLERS == number);
        let pair = |(number, item): (usize, usize)| Pair {
            user: user(number),
            item: ITEMS[item],
            liked: Some(false),
        };
        let pairs = mine.map(pair).collect();
        Self {
            number,
            rng,
            pairs,
            requests: Vec::new(),
            adds: Vec::new(),
            bookings: Vec::new(),
            sets: Vec::new(),
            configured: BTreeSet::new(),
            contradictions: Vec::new(),
            refusals: BTreeMap::new(),
        }
    }

    /// One request; whether the service is still there.
    pub async fn step(&mut self, client: &Client, workshops: &Workshops) -> bool {
        match self.rng.below(21) {
            0..6 => self.like(client).await,
            18.. => self.add(client).await,
            10..15 => {
                let workshop = self.rng.pick(&workshops.booked).clone();
                self.book(client, workshop).await
            }
            15..18 => self.take_several(client, workshops).await,
            9 if !self.requests.is_empty() => {
                let any = self.rng.below(self.requests.len() as u64);
                self.reserve(client, usize::try_from(any).unwrap()).await
            }
            _ => {
                let workshop = self.rng.pick(&workshops.plain).clone();
                let id = format!("request-{}-{}", self.number, self.requests.len());
                let seats = 1 + i64::try_from(self.rng.below(4)).unwrap();
                self.requests.push(Request { workshop, id, seats, known: Known::NotDone });
                self.reserve(client, self.requests.len() - 1).await
            }
        }
    }

    async fn like(&mut self, client: &Client) -> bool {
        let any = self.rng.below(self.pairs.len() as u64);
        let wanted = self.rng.below(2) == 0;
        let pair = &mut self.pairs[usize::try_from(any).unwrap()];
        let path = format!("/likes/{}/users/{}", pair.item, pair.user);
        let method = if wanted { hyper::Method::PUT } else { hyper::Method::DELETE };
        let heard = hear(&mut self.refusals, client.try_send(method, &path, "").await);
        match &heard {
            Heard::Answer(answer) => {
                let expected = pair.liked.map(|liked| liked != wanted);
                let changed = answer.json["changed"].as_bool();
                if answer.json["liked"] != wanted || expected.is_some_and(|e| changed != Some(e)) {
                    self.contradictions.push(format!("{path} was {:?}, {}", pair.liked, answer.text));
                }
                pair.liked = Some(wanted);
            }
            Heard::PerhapsDone | Heard::Nothing if pair.liked != Some(wanted) => pair.liked = None,
            _ => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    /// Adds, now and then once more.
    async fn add(&mut self, client: &Client) -> bool {
        let again = !self.adds.is_empty() && self.rng.below(5) == 0;
        let index = match again {
            true => usize::try_from(self.rng.below(self.adds.len() as u64)).unwrap(),
            false => {
                let id = format!("add-{}-{}", self.number, self.adds.len());
                self.adds.push(Add::any(id, &mut self.rng));
                self.adds.len() - 1
            }
        };
        let add = &mut self.adds[index];
        let heard =
            hear(&mut self.refusals, client.try_send(hyper::Method::POST, &add.path(), add.body()).await);
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(add.heard(answer)),
            Heard::PerhapsDone | Heard::Nothing if add.known == Known::NotDone => {
                add.known = Known::PerhapsDone;
            }
            _ => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    async fn reserve(&mut self, client: &Client, index: usize) -> bool {
        let request = &mut self.requests[index];
        let heard = hear(
            &mut self.refusals,
            client.try_send(hyper::Method::POST, &request.path(), request.body()).await,
        );
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(request.heard(answer)),
            Heard::PerhapsDone | Heard::Nothing if request.known == Known::NotDone => {
                request.known = Known::PerhapsDone;
            }
            _ => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    /// Asks for seats on any terms, or confirms or cancels what it asked for before.
    async fn book(&mut self, client: &Client, workshop: String) -> bool {
        if !self.configured.contains(&workshop) {
            let (path, rules) = (format!("/workshops/{workshop}"), bookings::rules(&workshop).to_string());
            let heard = hear(&mut self.refusals, client.try_send(hyper::Method::PUT, &path, rules).await);
            if let Heard::Answer(_) = heard {
                self.configured.insert(workshop);
            }
            return !matches!(heard, Heard::Nothing);
        }
        let change = match self.rng.below(5) {
            0 | 1 => Change::Confirm,
            2 => Change::Cancel,
            _ => {
                let id = format!("booking-{}-{}", self.number, self.bookings.len());
                self.bookings.push(Booking::any(workshop, id, &mut self.rng));
                return self.ask_for_seats(client, self.bookings.len() - 1).await;
            }
        };
        let in_hand = (self.bookings.len() as u64).min(IN_HAND);
        if in_hand == 0 {
            return true;
        }
        let index = self.bookings.len() - 1 - usize::try_from(self.rng.below(in_hand)).unwrap();
        match self.bookings[index].is_decided() {
            true => self.change(client, index, change).await,
            false => self.ask_for_seats(client, index).await,
        }
    }

    async fn ask_for_seats(&mut self, client: &Client, index: usize) -> bool {
        let booking = &mut self.bookings[index];
        let sent = client.try_send(hyper::Method::POST, &booking.path(), booking.body()).await;
        let heard = hear(&mut self.refusals, sent);
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(booking.heard(answer)),
            Heard::PerhapsDone | Heard::Nothing if booking.first == Known::NotDone => {
                booking.first = Known::PerhapsDone;
            }
            _ => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    async fn change(&mut self, client: &Client, index: usize, change: Change) -> bool {
        let booking = &mut self.bookings[index];
        let path = format!("{}/{}/{}", booking.path(), booking.id, change.word());
        let heard = hear(&mut self.refusals, client.try_send(hyper::Method::POST, &path, "").await);
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(booking.heard_of(change, answer)),
            Heard::PerhapsDone | Heard::Nothing => booking.perhaps(change),
            Heard::SurelyNotDone => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    /// Asks for seats of several workshops at once, or confirms or cancels what it asked for before.
    async fn take_several(&mut self, client: &Client, workshops: &Workshops) -> bool {
        let set_up = |workshop: &&String| self.configured.contains(*workshop);
        let set_up: Vec<String> = workshops.booked.iter().filter(set_up).cloned().collect();
        if set_up.len() < 2 {
            let missing = workshops.booked.iter().find(|workshop| !set_up.contains(workshop));
            let missing = missing.expect("there are several").clone();
            return self.book(client, missing).await;
        }
        let change = match self.rng.below(6) {
            0 => SetChange::Confirm,
            1 => SetChange::Reacquire,
            2 => SetChange::Cancel,
            _ => {
                let id = format!("set-{}-{}", self.number, self.sets.len());
                self.sets.push(SeatSet::any(&set_up, id, &mut self.rng));
                return self.ask_for_set(client, self.sets.len() - 1).await;
            }
        };
        let in_hand = (self.sets.len() as u64).min(IN_HAND);
        if in_hand == 0 {
            return true;
        }
        let index = self.sets.len() - 1 - usize::try_from(self.rng.below(in_hand)).unwrap();
        match self.sets[index].is_decided() {
            true => self.change_set(client, index, change).await,
            false => self.ask_for_set(client, index).await,
        }
    }

    async fn ask_for_set(&mut self, client: &Client, index: usize) -> bool {
        let set = &mut self.sets[index];
        let sent = client.try_send(hyper::Method::POST, "/reservations", set.body()).await;
        let heard = hear(&mut self.refusals, sent);
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(set.heard(answer)),
            Heard::PerhapsDone | Heard::Nothing if set.first == Known::NotDone => {
                set.first = Known::PerhapsDone;
            }
            _ => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    async fn change_set(&mut self, client: &Client, index: usize, change: SetChange) -> bool {
        let set = &mut self.sets[index];
        let path = format!("{}/{}", set.path(), change.word());
        let heard =
            hear(&mut self.refusals, client.try_send(hyper::Method::POST, &path, change.body()).await);
        match &heard {
            Heard::Answer(answer) => self.contradictions.extend(set.heard_of(change, answer)),
            Heard::PerhapsDone | Heard::Nothing => set.perhaps(change),
            Heard::SurelyNotDone => {}
        }
        !matches!(heard, Heard::Nothing)
    }

    /// Asks again for sets that are not known to be decided, and for what `replay` says of the rest.
    pub async fn ask_again_for_sets(&mut self, client: &Client, replay: Replay, round: &str) {
        for set in &mut self.sets {
            let recent = set.lines.keys().any(|workshop| workshop.starts_with(round));
            if set.is_decided() && !recent && replay != Replay::All {
                continue;
            }
            let answer = until_answered(async || client.post("/reservations", set.body()).await).await;
            self.contradictions.extend(set.heard(&answer));
        }
    }

    /// The same for bookings.
    pub async fn ask_again_for_bookings(&mut self, client: &Client, replay: Replay, round: &str) {
        let older: Vec<String> = match self.bookings.is_empty() {
            true => Vec::new(),
            false => (0..OLDER_REPLAYS).map(|_| self.rng.pick(&self.bookings).id.clone()).collect(),
        };
        for booking in &mut self.bookings {
            let recent = booking.workshop.starts_with(round) || older.contains(&booking.id);
            if booking.is_decided() && !recent && replay != Replay::All {
                continue;
            }
            let answer = until_answered(async || client.post(&booking.path(), booking.body()).await).await;
            self.contradictions.extend(booking.heard(&answer));
        }
    }

    /// Takes over where the service says this caller's bookings of a workshop are; what contradicts what was known.
    pub fn settle_bookings(&mut self, workshop: &str, told: &BTreeMap<String, Listed>) -> Vec<String> {
        let mine = self.bookings.iter_mut().filter(|booking| booking.workshop == workshop);
        mine.filter_map(|booking| match told.get(&booking.id) {
            Some(listed) => booking.found(listed.state),
            None => Some(format!("{booking}: is not listed")),
        })
        .collect()
    }

    /// Asks again for what is not known to be decided, and for what `replay` says of the rest.
    pub async fn ask_again(&mut self, client: &Client, replay: Replay, round: &str) {
        let older: Vec<String> = match self.requests.is_empty() {
            true => Vec::new(),
            false => (0..OLDER_REPLAYS).map(|_| self.rng.pick(&self.requests).id.clone()).collect(),
        };
        for request in &mut self.requests {
            let decided = matches!(request.known, Known::Decided(_));
            let recent = request.workshop.starts_with(round) || older.contains(&request.id);
            let passed_over = match replay {
                Replay::All => false,
                Replay::Recent => decided && !recent,
                Replay::DecidedOnly => !decided,
            };
            if passed_over {
                continue;
            }
            let ask = async || client.post(&request.path(), request.body()).await;
            let answer = until_answered(ask).await;
            self.contradictions.extend(request.heard(&answer));
        }
        let recent = self.adds.len().saturating_sub(OLDER_REPLAYS);
        for (index, add) in self.adds.iter_mut().enumerate() {
            let passed_over = match replay {
                Replay::All => false,
                Replay::Recent => add.is_done() && index < recent,
                Replay::DecidedOnly => !add.is_done(),
            };
            if passed_over {
                continue;
            }
            let answer = until_answered(async || client.post(&add.path(), add.body()).await).await;
            self.contradictions.extend(add.heard(&answer));
        }
    }

    /// Takes over what the service says of this caller's pairs; what contradicts what was known.
    pub fn settle_likes(&mut self, told: &BTreeMap<(String, &'static str), bool>) -> Vec<String> {
        let mut found = Vec::new();
        for pair in &mut self.pairs {
            let told = told[&(pair.user.clone(), pair.item)];
            if pair.liked.is_some_and(|liked| liked != told) {
                found.push(format!("{} likes {}: was {}, is {told}", pair.user, pair.item, !told));
            }
            pair.liked = Some(told);
        }
        found
    }

    pub fn likers_of(&self, item: &str) -> i64 {
        self.pairs.iter().filter(|pair| pair.item == item && pair.liked == Some(true)).count() as i64
    }
}

impl Request {
    fn path(&self) -> String {
        format!("/workshops/{}/reservations", self.workshop)
    }

    fn body(&self) -> String {
        format!(r#"{{"requestId":"{}","seats":{}}}"#, self.id, self.seats)
    }
}

/// Takes problems at their word. A conflict is an answer.
fn hear<E>(refusals: &mut BTreeMap<String, u64>, heard: Result<Answer, E>) -> Heard {
    let Ok(answer) = heard else { return Heard::Nothing };
    if answer.error().is_empty() || answer.status == 409 {
        return Heard::Answer(answer);
    }
    *refusals.entry(answer.error().to_owned()).or_default() += 1;
    match answer.error() {
        "outcome_unknown" => Heard::PerhapsDone,
        "overloaded" | "unavailable" | "disk_full" => Heard::SurelyNotDone,
        _ => panic!("{answer:?}"),
    }
}
