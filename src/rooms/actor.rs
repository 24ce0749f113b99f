//! The task that owns a room while it is awake: commands in order, one after another.
//!
//! What is told goes out in the order in which it was decided. A message that must be durable first holds up
//! what is told after it, but not the deciding: those turns wait in a queue of their own.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::command::{Command, From, Reply, Sent, View, answer};
use super::denied::Denied;
use super::frame::{Frame, Kind, Snapshot};
use super::link::{Link, Pace};
use super::presence::End;
use super::recorder::{Appended, Opened};
use super::records::message;
use super::registry::Rooms;
use super::room::Room;
use super::state::{Delivered, Said, State, Stream};
use super::turns::{Resolved, Turn, first};
use super::types::{Message, Position};
use crate::partition::Refusal;
use crate::store::rooms::StoredMessage;

/// Commands taken at a time; then the connections' tasks get their turn to write what they came to.
const BATCH: usize = 64;

struct Actor {
    rooms: Rooms,
    room: Arc<Room>,
    state: Box<State>,
    turns: VecDeque<Turn>,
    /// Whether more commands wait behind the one that is decided.
    followed: bool,
}

/// Owns a room from its waking to its falling asleep.
pub(super) async fn run(
    rooms: Rooms,
    room: Arc<Room>,
    state: Box<State>,
    mut queue: mpsc::Receiver<Command>,
) {
    let mut actor = Actor { rooms, room, state, turns: VecDeque::new(), followed: false };
    if let Err(refusal) = actor.open().await {
        // Those who came meanwhile are told; the next one tries again.
        while let Ok(command) = queue.try_recv() {
            command.refuse(refusal);
        }
    }
    let sleep_after = actor.rooms.settings().sleep_after;
    let mut stirred = Instant::now();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            resolved = first(&mut actor.turns), if !actor.turns.is_empty() => actor.take_turn(resolved),
            _taken = queue.recv_many(&mut batch, BATCH) => {
                if actor.state.stream.is_none() && let Err(refusal) = actor.open().await {
                    batch.drain(..).for_each(|command| command.refuse(refusal));
                }
                actor.followed = batch.len() > 1;
                for command in batch.drain(..) {
                    if command.stirs() {
                        stirred = Instant::now();
                    }
                    actor.decide(command);
                }
                actor.room.wake_waiting();
                if actor.followed {
                    tokio::task::yield_now().await;
                }
            }
            () = tokio::time::sleep_until(stirred + sleep_after), if actor.turns.is_empty() => {
                match actor.room.sleep(&actor.rooms, actor.state, &queue) {
                    Ok(()) => return,
                    Err(state) => actor.state = state,
                }
            }
        }
    }
}

impl Actor {
    /// Learns where the numbering stands. A room in memory begins a stream of its own.
    async fn open(&mut self) -> Result<(), Refusal> {
        if self.state.stream.is_some() {
            return Ok(());
        }
        let opened = match self.rooms.recorder() {
            None => None,
            Some(recorder) => recorder.open(self.room.name.clone())?.within(recorder.patience()).await?,
        };
        let opened = opened.unwrap_or_else(|| Opened { epoch: self.rooms.new_epoch(), last: 0 });
        self.state.stream = Some(Stream { epoch: opened.epoch, last: opened.last });
        Ok(())
    }

    fn decide(&mut self, command: Command) {
        let limits = self.rooms.settings().limits;
        let now_ms = self.rooms.now_ms();
        match command {
            Command::Join { user, meta, reply } => {
                // A caller that has gone away is not there.
                if reply.is_closed() {
                    return;
                }
                let joined = self.state.join(&user, meta, &limits, now_ms);
                self.alarm(now_ms.saturating_add(limits.times.idle_ms));
                let online = self.state.presence.online();
                answer(reply, joined.map(|said| self.say_all(said)).map(|()| online));
            }
            Command::Leave { user, all, reply } => {
                let left = self.state.leave(&user, all);
                self.say_all(left);
                answer(reply, Ok(self.state.presence.online()));
            }
            Command::Say { message, from, accepted } => self.decide_message(message, from, accepted, now_ms),
            Command::Update { link, meta } => {
                let Some(user) = &link.user else { return };
                match self.state.update(user, meta, &limits) {
                    Ok(said) => self.say_all(said),
                    Err(denied) => link.tell_error(denied.word(), None, limits.queue),
                }
            }
            Command::Connect { link, since, reply } => self.connect(link, since, reply, now_ms),
            Command::Gone { link, end } => {
                let left = self.state.gone(&link, end, &limits, now_ms);
                self.say_all(left);
                if end == End::Lost {
                    self.alarm(now_ms.saturating_add(limits.times.grace_ms));
                }
            }
            Command::Forget { user, reply } => {
                let (forgotten, left) = self.state.forget(&user);
                self.say_all(left);
                answer(reply, Ok(forgotten));
            }
            Command::View { members, reply } => answer(reply, Ok(View::of(&self.state, members))),
            Command::Tick => self.tick(now_ms),
            Command::Ping => self.state.links().iter().for_each(|link| link.ping(limits.queue)),
            Command::Drain => self.state.links().iter().for_each(|link| self.rooms.send_away(link)),
        }
    }

    fn tick(&mut self, now_ms: i64) {
        let limits = self.rooms.settings().limits;
        let left = self.state.expire(&limits, now_ms);
        self.say_all(left);
        if let Some(due_ms) = self.state.next_due_ms(&limits) {
            self.alarm(due_ms.max(now_ms + self.rooms.settings().alarm_spacing_ms));
        }
    }

    fn connect(&mut self, link: Arc<Link>, since: Option<Position>, reply: Reply<()>, now_ms: i64) {
        let limits = self.rooms.settings().limits;
        // A slow join whose socket is gone: nobody to let in.
        if reply.is_closed() {
            return;
        }
        match self.state.connect(&link, since, &limits, now_ms) {
            Err(denied) => answer(reply, Err(denied)),
            Ok((joined, attach)) => {
                self.alarm(now_ms.saturating_add(limits.times.idle_ms));
                self.say_all(joined);
                self.attach(attach);
                answer(reply, Ok(()));
                if self.rooms.is_draining() {
                    self.rooms.send_away(&link);
                }
            }
        }
    }

    fn attach(&mut self, said: Said) {
        let Said::Attach { link, snapshot, since: Some(since) } = said else {
            return self.say_all(Some(said));
        };
        let Some(recorder) = self.rooms.recorder() else {
            return self.say_all(Some(Said::Attach { link, snapshot, since: Some(since) }));
        };
        let (patience, asked) = (recorder.patience(), recorder.read(self.room.name.clone(), since.offset));
        let read = Box::pin(async move { asked?.within(patience).await });
        self.turns.push_back(Turn::Read { read, link, snapshot, since });
    }

    fn decide_message(&mut self, message: Message, from: From, accepted: Instant, now_ms: i64) {
        let limits = self.rooms.settings().limits;
        if let (From::Http(_), Some(user)) = (&from, &message.user) {
            self.state.refresh(user, now_ms);
        }
        if let Err(denied) = self.state.may_say(&limits, now_ms) {
            return self.failed(from, &message, denied);
        }
        self.rooms.metrics().messages_in.increment(1);
        let Some(recorder) = self.rooms.recorder() else {
            let replayed = self.state.said_before(&message);
            let offset = replayed.unwrap_or_else(|| self.state.position().offset + 1);
            let appended = Appended { offset, at_ms: now_ms, replayed: replayed.is_some() };
            return self.tell(appended, &message, from, accepted);
        };
        let Position { epoch, offset: last } = self.state.position();
        let asked = recorder.append(self.room.name.clone(), Opened { epoch, last }, message.clone());
        match asked {
            Err(refusal) => self.failed(from, &message, refusal.into()),
            Ok(answer) => {
                let appended = Box::pin(answer.within(recorder.patience()));
                self.turns.push_back(Turn::Append { appended, message, from, accepted });
            }
        }
    }

    /// Says something now, or after what is still on its way to the disk.
    fn say_all(&mut self, said: impl IntoIterator<Item = Said>) {
        for said in said {
            match self.turns.is_empty() {
                true => self.say(said),
                false => self.turns.push_back(Turn::Say(said)),
            }
        }
    }

    fn say(&mut self, said: Said) {
        match said {
            Said::Member { kind, user, meta, online } => {
                match kind {
                    Kind::Join => self.rooms.metrics().joins.increment(1),
                    Kind::Leave => self.rooms.metrics().leaves.increment(1),
                    _ => {}
                }
                let limits = self.rooms.settings().limits;
                let delivered = self.state.tell_member(kind, &user, meta.as_ref(), online, &limits);
                self.delivered(delivered);
            }
            Said::Attach { link, snapshot, since } => self.state.attach(&link, &snapshot, since.as_ref()),
        }
    }

    fn take_turn(&mut self, resolved: Resolved) {
        let Some(turn) = self.turns.pop_front() else { return };
        match (turn, resolved) {
            (Turn::Say(said), _) => self.say(said),
            (Turn::Append { message, from, accepted, .. }, Resolved::Appended(Ok(appended))) => {
                if appended.offset > self.state.position().offset + 1 {
                    self.turns.push_front(Turn::Tell { appended, message, from, accepted });
                    self.catch_up();
                } else {
                    self.tell(appended, &message, from, accepted);
                }
            }
            (Turn::Append { message, from, .. }, Resolved::Appended(Err(refusal))) => {
                self.failed(from, &message, refusal.into());
                if refusal == Refusal::OutcomeUnknown {
                    self.catch_up();
                }
            }
            (Turn::CatchUp { .. }, Resolved::Read(read)) => self.tell_stored(read.unwrap_or_default()),
            (Turn::Tell { appended, message, from, accepted }, _) => {
                self.tell(appended, &message, from, accepted);
            }
            (Turn::Read { link, snapshot, since, .. }, Resolved::Read(read)) => {
                self.attach_read(&link, &snapshot, &since, read.ok());
            }
            // The first turn is the one that was waited for.
            (Turn::Append { .. } | Turn::Read { .. } | Turn::CatchUp { .. }, _) => {}
        }
    }

    /// Has what is stored and was not told read, to be told first: a commit that came too late for its answer, or whose
    /// sync failed although it is there.
    fn catch_up(&mut self) {
        let Some(recorder) = self.rooms.recorder() else { return };
        let (patience, last) = (recorder.patience(), self.state.position().offset);
        // Refused, the next message finds the gap.
        if let Ok(asked) = recorder.read(self.room.name.clone(), last) {
            self.turns.push_front(Turn::CatchUp { read: Box::pin(asked.within(patience)) });
        }
    }

    /// Tells everyone what the disk has beyond what was told.
    fn tell_stored(&mut self, stored: Vec<StoredMessage>) {
        let limits = self.rooms.settings().limits;
        for stored in stored {
            if stored.offset > self.state.position().offset {
                let place = (stored.offset, stored.at_ms);
                let message = message(stored);
                let delivered =
                    self.state.tell_message(&message, place, None, false, &limits, Pace::Gathered);
                self.delivered(delivered);
            }
        }
    }

    /// What was missed, as the disk has it: whole, or not at all.
    fn attach_read(
        &mut self,
        link: &Link,
        snapshot: &Snapshot,
        since: &Position,
        read: Option<Vec<StoredMessage>>,
    ) {
        if !self.turns.iter().any(|turn| matches!(turn, Turn::Append { .. } | Turn::Tell { .. })) {
            // Nobody's turn is going to tell what is there beyond what was told.
            self.tell_stored(read.clone().unwrap_or_default());
        }
        let end = self.state.position();
        // Later messages are told when their turn comes.
        let missed: Vec<_> =
            read.into_iter().flatten().filter(|stored| stored.offset <= end.offset).collect();
        let whole = since.epoch == end.epoch
            && since.offset <= end.offset
            && missed.len() as u64 == end.offset - since.offset;
        let told = |stored: StoredMessage| {
            let position = Position { epoch: Arc::clone(&end.epoch), offset: stored.offset };
            let at_ms = stored.at_ms;
            Frame::message(position, &message(stored), at_ms, None)
        };
        let frames: Vec<Arc<Frame>> = match whole {
            true => missed.into_iter().map(told).collect(),
            false => Vec::new(),
        };
        let frames: Vec<&Frame> = frames.iter().map(|frame| &**frame).collect();
        self.state.attach_with(link, snapshot, Some((whole, since)), &frames);
    }

    fn tell(&mut self, appended: Appended, message: &Message, from: From, accepted: Instant) {
        let limits = self.rooms.settings().limits;
        // One that is kept since before and was never told is told now.
        if appended.offset > self.state.position().offset {
            let origin = match &from {
                From::Socket(link) => Some(link.id),
                From::Http(_) => None,
            };
            let keep = self.rooms.recorder().is_none() && limits.history.messages > 0;
            let place = (appended.offset, appended.at_ms);
            let alone = self.turns.is_empty() && !self.followed;
            let pace = if alone { Pace::Alone } else { Pace::Gathered };
            let delivered = self.state.tell_message(message, place, origin, keep, &limits, pace);
            if keep {
                self.alarm(appended.at_ms.saturating_add(limits.history.age_ms));
            }
            self.delivered(delivered);
            self.rooms.metrics().broadcast_seconds.record(accepted.elapsed().as_secs_f64());
        }
        if let From::Http(reply) = from {
            let position = Position { offset: appended.offset, ..self.state.position() };
            let online = self.state.presence.online();
            answer(reply, Ok(Sent { position, online, replayed: appended.replayed }));
        }
    }

    /// A message that is not said: its sender hears of it, and nobody else.
    fn failed(&self, from: From, message: &Message, denied: Denied) {
        self.rooms.metrics().refused.increment(1);
        match from {
            From::Http(reply) => answer(reply, Err(denied)),
            From::Socket(link) => {
                let queue = self.rooms.settings().limits.queue;
                link.tell_error(denied.word(), message.id.as_deref(), queue);
            }
        }
    }

    fn delivered(&self, delivered: Delivered) {
        let metrics = self.rooms.metrics();
        metrics.messages_out.increment(delivered.queued);
        metrics.dropped.increment(delivered.dropped);
    }

    fn alarm(&self, due_ms: i64) {
        self.rooms.set_alarm(&self.room, due_ms);
    }
}
