//! A request for seats: to take, to hold, to wait for, to exchange for others.

use super::Life;
use super::desk::{Book, Desk};
use super::plain;
use crate::reservations::types::{RequestId, Seats};
use crate::store::bookings::{Booking, EventKind, Reason, State, Terms};
use crate::store::reservations::{Attempt, Status};

/// What came of a request for seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// A decision, first or repeated.
    Decided {
        /// What was decided first.
        status: First,
        /// Why, if that was a refusal, or if it waited and was passed over.
        reason: Option<Reason>,
        /// The workshop's capacity now.
        capacity: i64,
        /// Seats taken just after the first decision.
        reserved: i64,
        /// Whether the id was decided before.
        replayed: bool,
        /// Where the request is now, if it has a life beyond its first decision.
        life: Option<Life>,
    },
    /// The id belongs to a request that asked for something else.
    Reused {
        /// What differs.
        field: &'static str,
        /// Seats of the first attempt.
        first_seats: i64,
        /// Whether it is the same holder's.
        is_own: bool,
    },
    /// The workshop limits what a holder may have, and the request names none. The id is not used up.
    HolderRequired,
    /// More seats than one request may ask for here. The id is not used up.
    TooManySeats {
        /// How many it may.
        max: i64,
    },
    /// It asks for more than the settings allow, which only a repetition of what was allowed once may. The id is not
    /// used up.
    BeyondLimits,
    /// The request that is to be replaced does not exist. The id is not used up.
    NothingToReplace,
    /// The request that is to be replaced is a line of a set, whose lines stay together. The id is not used up.
    ReplacesPartOfSet,
}

/// A first decision's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum First {
    /// The seats are taken.
    Accepted,
    /// They are not.
    Rejected,
    /// They are held.
    Held,
    /// They are waited for.
    Waiting,
}

impl First {
    /// As answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Held => "held",
            Self::Waiting => "waiting",
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// How many seats.
    pub seats: Seats,
    /// What else.
    pub terms: Terms,
    /// Of a line of a set that holds: when that ends, unless it is put off. No part of what is asked for.
    pub set_ends_at_ms: Option<i64>,
    /// Whether what is replaced has to be the same holder's. No part of what is asked for.
    pub replaces_own: bool,
}

impl Ask {
    fn seats(&self) -> i64 {
        i64::from(self.seats.get())
    }
}

/// Decides a request for seats, or repeats its first decision: that is looked up before anything that
/// depends on the workshop's state, so that a replay always meets its first answer.
///
/// # Errors
/// The book's.
pub fn request<B: Book>(
    desk: &mut Desk<'_, B>,
    request: &RequestId,
    ask: &Ask,
) -> Result<Reserved, B::Error> {
    if let Some(first) = desk.book.attempt(request)? {
        return desk.repeat(request, first, ask);
    }
    if ask.terms == Terms::default() && desk.is_simple() {
        return Ok(desk.decide_simply(request, ask));
    }
    desk.look_at_the_clock()?;
    if let Some(invalid) = invalid(desk, ask)? {
        return Ok(invalid);
    }
    let replaced = match ask.terms.replaces.clone().map(RequestId::from) {
        Some(old) => desk.life(&old)?.map(|booking| (old, booking)),
        None => None,
    };
    let now_ms = desk.now_ms;
    let live = |state: State| state.takes_seats() || state == State::Waiting;
    let replaced = replaced.filter(|(_, old)| live(old.state_at(now_ms)));
    match desk.refusal(ask, replaced.as_ref().map(|(_, old)| old))? {
        None => desk.accept(request, ask, replaced),
        Some(reason) => desk.refuse_or_queue(request, ask, reason),
    }
}

/// Repeats a request's first decision, if there was one. What asks for more than the settings of today allow is looked up
/// here and goes no further: allowed once, it is answered as it was.
///
/// # Errors
/// The book's.
pub fn repeat<B: Book>(desk: &mut Desk<'_, B>, request: &RequestId, ask: &Ask) -> Result<Reserved, B::Error> {
    match desk.book.attempt(request)? {
        Some(first) => desk.repeat(request, first, ask),
        None => Ok(Reserved::BeyondLimits),
    }
}

/// What is wrong with a request whose id is new: then nothing is stored of it. Of its holder, only whether
/// there is one is looked at.
///
/// # Errors
/// The book's.
pub fn invalid<B: Book>(desk: &mut Desk<'_, B>, ask: &Ask) -> Result<Option<Reserved>, B::Error> {
    let rules = &desk.workshop.rules;
    if rules.max_seats_per_holder.is_some() && ask.terms.holder.is_none() {
        return Ok(Some(Reserved::HolderRequired));
    }
    if let Some(max) = rules.max_seats_per_request.filter(|max| ask.seats() > *max) {
        return Ok(Some(Reserved::TooManySeats { max }));
    }
    match ask.terms.replaces.clone().map(RequestId::from) {
        Some(old) => Ok(match desk.life(&old)? {
            None => Some(Reserved::NothingToReplace),
            Some(life) if ask.replaces_own && life.terms.holder != ask.terms.holder => {
                Some(Reserved::NothingToReplace)
            }
            Some(life) => life.terms.of_set.then_some(Reserved::ReplacesPartOfSet),
        }),
        None => Ok(None),
    }
}

impl<B: Book> Desk<'_, B> {
    /// Whether nothing is to be looked at but the number of seats.
    fn is_simple(&self) -> bool {
        let (workshop, rules) = (&self.workshop, &self.workshop.rules);
        workshop.held == 0
            && workshop.waiting == 0
            && rules.max_seats_per_request.is_none()
            && rules.max_seats_per_holder.is_none()
            && rules.opens_at_ms.is_none()
            && rules.closes_at_ms.is_none()
    }

    fn decide_simply(&mut self, request: &RequestId, ask: &Ask) -> Reserved {
        let (attempt, after) = plain::first(self.workshop, ask.seats, self.now_ms);
        self.workshop = after;
        self.first_decision(request, attempt, None)
    }

    /// Why a request gets no seats; `replaced` gives up its own for it.
    fn refusal(&mut self, ask: &Ask, replaced: Option<&Booking>) -> Result<Option<Reason>, B::Error> {
        if let Some(reason) = self.outside_the_sale() {
            return Ok(Some(reason));
        }
        let holder = ask.terms.holder;
        let own = replaced.filter(|old| holder.is_some() && old.terms.holder == holder);
        if self.exceeds_share(holder, ask.seats(), own.map_or(0, Booking::taken))? {
            return Ok(Some(Reason::LimitExceeded));
        }
        let itself = i64::from(replaced.is_some_and(|old| old.state == State::Waiting));
        if self.workshop.waiting > itself && !own.is_some_and(|old| overtakes_nobody(ask, old)) {
            return Ok(Some(Reason::WaitersFirst));
        }
        // Who gives up as many takes none from anybody, also where there are fewer than are taken.
        let more = ask.seats() - replaced.map_or(0, Booking::taken);
        Ok((more > 0 && more > self.free()).then_some(Reason::NotEnoughSeats))
    }

    fn accept(
        &mut self,
        request: &RequestId,
        ask: &Ask,
        replaced: Option<(RequestId, Booking)>,
    ) -> Result<Reserved, B::Error> {
        let seats = ask.seats();
        let exchanges = replaced.is_some();
        let old = replaced.as_ref().map(|(_, old)| old);
        let given_up = old.map_or(0, Booking::taken);
        let booking = (ask.terms != Terms::default()).then(|| self.new_booking(ask, old));
        let overbooked = self.workshop.overbooked;
        if let Some((old, booking)) = replaced {
            self.give_up(&old, booking);
        }
        if seats > given_up {
            self.make_room(seats)?;
        }
        self.take(seats, ask.terms.hold);
        // Taken again, they are as far beyond the capacity as before, or less.
        let above = (self.workshop.reserved - self.workshop.capacity).max(0);
        self.workshop.overbooked = overbooked.min(above);
        self.workshop.accepted_requests += 1;
        self.workshop.accepted_seats += seats;
        if let Some(expires_at_ms) = booking.as_ref().and_then(|booking| booking.expires_at_ms) {
            self.ends_at(expires_at_ms);
        }
        self.line_ends_at(booking.as_ref().and_then(|booking| booking.set_ends_at_ms));
        let attempt = self.attempt(ask, Status::Accepted, None);
        let reserved = self.first_decision(request, attempt, booking);
        if exchanges {
            self.serve_waiters()?;
        }
        Ok(reserved)
    }

    /// A hold instead of another one goes on with its time: however often it is exchanged, it is one hold.
    fn new_booking(&self, ask: &Ask, replaced: Option<&Booking>) -> Booking {
        let begun = replaced.filter(|old| ask.terms.hold && old.state == State::Held);
        let since_ms = begun.map_or(self.now_ms, |old| old.since_ms);
        let longest = since_ms.saturating_add(self.defaults.max_hold_ms);
        // What it was granted before the setting was lowered, it keeps.
        let longest = longest.max(begun.and_then(|old| old.expires_at_ms).unwrap_or(longest));
        let lives_ms = ask.terms.ttl_ms.or(self.workshop.rules.hold_ttl_ms);
        let lives_ms = lives_ms.unwrap_or(self.defaults.hold_ttl_ms);
        Booking {
            terms: ask.terms.clone(),
            queued: false,
            state: if ask.terms.hold { State::Held } else { State::Accepted },
            seats: ask.seats(),
            since_ms,
            // Of a set, its home watches the clock.
            expires_at_ms: (ask.terms.hold && !ask.terms.of_set)
                .then(|| self.now_ms.saturating_add(lives_ms).min(longest)),
            place: None,
            set_ends_at_ms: ask.set_ends_at_ms.filter(|_| ask.terms.of_set),
            set_round: 0,
        }
    }

    fn refuse_or_queue(
        &mut self,
        request: &RequestId,
        ask: &Ask,
        reason: Reason,
    ) -> Result<Reserved, B::Error> {
        self.workshop.rejected_requests += 1;
        let lacks_seats = matches!(reason, Reason::NotEnoughSeats | Reason::WaitersFirst);
        // What replaces something has what it had, and does not wait for more.
        let may_wait = ask.terms.waitlist && ask.terms.replaces.is_none() && lacks_seats;
        let waitlist = self.workshop.rules.waitlist.filter(|_| may_wait);
        // Who wants more than there ever are would wait for ever, and everybody behind with them.
        let reason = match waitlist.filter(|_| ask.seats() <= self.workshop.capacity) {
            Some(_) if self.waits_for_its_share(ask.terms.holder, ask.seats())? => Reason::LimitExceeded,
            Some(waitlist) if self.workshop.waiting < waitlist.max_length => return self.queue(request, ask),
            Some(_) => Reason::WaitlistFull,
            None => reason,
        };
        let booking = (ask.terms != Terms::default()).then(|| Booking {
            state: State::Rejected,
            expires_at_ms: None,
            set_ends_at_ms: None,
            ..self.new_booking(ask, None)
        });
        let attempt = self.attempt(ask, Status::Rejected, Some(reason));
        Ok(self.first_decision(request, attempt, booking))
    }

    fn queue(&mut self, request: &RequestId, ask: &Ask) -> Result<Reserved, B::Error> {
        self.workshop.waiting += 1;
        let booking = Booking {
            queued: true,
            state: State::Waiting,
            expires_at_ms: None,
            // The number that the event of its queueing gets: later ones come later.
            place: Some(self.workshop.last_event + 1),
            ..self.new_booking(ask, None)
        };
        let attempt = self.attempt(ask, Status::Rejected, None);
        let mut reserved = self.first_decision(request, attempt, Some(booking));
        // First of those who fit may be this one, and then it has its offer at once.
        self.serve_waiters()?;
        let served = self.book.booking(request)?.filter(|booking| booking.state != State::Waiting);
        if let (Some(booking), Reserved::Decided { life, reason, .. }) = (served, &mut reserved) {
            *life = Some(Life::of(&booking, self.now_ms, None));
            if booking.state == State::Rejected {
                *reason = self.book.skipped_for(request)?;
            }
        }
        Ok(reserved)
    }

    fn attempt(&self, ask: &Ask, status: Status, reason: Option<Reason>) -> Attempt {
        let (seats, reserved_after) = (ask.seats(), self.used());
        let reason = reason.filter(|reason| *reason != Reason::NotEnoughSeats);
        Attempt { seats, status, reserved_after, decided_at_ms: self.now_ms, reason }
    }

    /// Writes a first decision down and words its answer.
    fn first_decision(
        &mut self,
        request: &RequestId,
        attempt: Attempt,
        booking: Option<Booking>,
    ) -> Reserved {
        let status = first_word(attempt, booking.as_ref());
        let reason = refused_for(attempt, status);
        match (status, &booking) {
            (First::Held, Some(booking)) => self.log_hold(EventKind::Held, request, booking),
            (First::Waiting, _) => self.log(EventKind::Waiting, request, attempt.seats, None),
            (First::Rejected, _) => self.log(EventKind::Rejected, request, attempt.seats, reason),
            _ => self.log(EventKind::Accepted, request, attempt.seats, None),
        }
        let position = (status == First::Waiting).then_some(self.workshop.waiting);
        let life = booking.as_ref().map(|booking| Life::of(booking, self.now_ms, position));
        self.book.put_attempt(request, attempt);
        if let Some(booking) = booking {
            self.book.put_booking(request, booking);
        }
        let (capacity, reserved) = (self.workshop.capacity, attempt.reserved_after);
        Reserved::Decided { status, reason, capacity, reserved, replayed: false, life }
    }

    fn repeat(&mut self, request: &RequestId, first: Attempt, ask: &Ask) -> Result<Reserved, B::Error> {
        let booking = self.book.booking(request)?;
        let terms = booking.as_ref().map_or_else(Terms::default, |booking| booking.terms.clone());
        if let Some(field) = what_differs(first.seats, &terms, ask) {
            let is_own = terms.holder == ask.terms.holder;
            return Ok(Reserved::Reused { field, first_seats: first.seats, is_own });
        }
        let status = first_word(first, booking.as_ref());
        let life = match &booking {
            Some(booking) => Some(Life::of(booking, self.now_ms, self.position(booking)?)),
            None => None,
        };
        let reason = match (status, life) {
            (First::Waiting, Some(Life { state: State::Rejected, .. })) => self.book.skipped_for(request)?,
            _ => refused_for(first, status),
        };
        Ok(Reserved::Decided {
            status,
            reason,
            capacity: self.workshop.capacity,
            reserved: first.reserved_after,
            replayed: true,
            life,
        })
    }
}

/// A first decision's word, whatever came later.
#[must_use]
pub fn first_word(attempt: Attempt, booking: Option<&Booking>) -> First {
    match (attempt.status, booking) {
        (Status::Accepted, Some(booking)) if booking.terms.hold => First::Held,
        (Status::Accepted, _) => First::Accepted,
        (Status::Rejected, Some(booking)) if booking.queued => First::Waiting,
        (Status::Rejected, _) => First::Rejected,
    }
}

/// Whether a holder that exchanges seats of its own while others wait gets none that they wait for: no more than it has,
/// and for no longer than an offer of them lives.
fn overtakes_nobody(ask: &Ask, own: &Booking) -> bool {
    ask.seats() <= own.taken() && !(ask.terms.hold && own.state == State::Offered)
}

fn refused_for(attempt: Attempt, status: First) -> Option<Reason> {
    (status == First::Rejected).then(|| attempt.reason.unwrap_or(Reason::NotEnoughSeats))
}

/// The first field in which a request differs from the one whose id it carries.
fn what_differs(seats: i64, terms: &Terms, ask: &Ask) -> Option<&'static str> {
    let Terms { hold, ttl_ms, holder, waitlist, replaces, of_set } = &ask.terms;
    [
        ("requestId", terms.of_set != *of_set),
        ("seats", seats != ask.seats()),
        ("hold", terms.hold != *hold),
        ("ttlMs", terms.ttl_ms != *ttl_ms),
        ("holder", terms.holder != *holder),
        ("waitlist", terms.waitlist != *waitlist),
        ("replaces", terms.replaces != *replaces),
    ]
    .into_iter()
    .find_map(|(field, differs)| differs.then_some(field))
}
