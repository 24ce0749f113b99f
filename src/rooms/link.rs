//! One connection as its room sees it: who it is, when it was last heard of, and a bounded queue.
//!
//! An idle link holds no queue at all. The room puts frames in and never waits; the connection's own task
//! takes them out. One that does not keep up is told so and closed; its peers notice nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tungstenite::protocol::frame::coding::{Control, OpCode};

use super::close::Close;
use super::frame::{Frame, Kind, Mode, data_frame, text_frame};
use super::types::{ConnectionId, UserId};

/// Bounds of what waits for one connection.
#[derive(Debug, Clone, Copy)]
pub struct QueueBounds {
    /// `rooms.queue_frames`
    pub frames: usize,
    /// `rooms.queue_bytes`
    pub bytes: usize,
}

/// What a connection wants to hear.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    /// In which shape.
    pub mode: Mode,
    /// Its own messages too.
    pub echo: bool,
    /// Who comes and goes, too.
    pub presence: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Link {
    /// Which connection.
    pub id: ConnectionId,
    /// Whose, if anybody's.
    pub user: Option<UserId>,
    /// What it hears.
    pub wishes: Wishes,
    /// Set once it has had its snapshot: from then on it hears everything.
    attached: AtomicBool,
    seen_ms: AtomicI64,
    outbox: Mutex<Outbox>,
}

#[derive(Debug, Default)]
struct Outbox {
    queue: VecDeque<Bytes>,
    /// Frames at the front that no bound counts: the snapshot, and what was missed.
    uncounted: usize,
    /// Of the counted ones.
    bytes: usize,
    close: Option<Close>,
    /// Nobody takes anything any more.
    ended: bool,
    waker: Option<Waker>,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It waits to be written.
    Queued,
    /// The connection does not want it, or is on its way out.
    Skipped,
    /// There was no room: the connection is closed as slow, and so many frames with this one are dropped.
    Overflowed(u64),
}

/// What the connection's task has to do next.
#[derive(Debug)]
pub enum Next {
    /// Write these.
    Frames,
    /// Everything is written: close.
    Close(Close),
}

/// Most bytes that a task takes out at a time, so that most of what waits stays where it is counted.
const TAKE_BYTES: usize = 64 * 1024;
/// Most frames, likewise: what one vectored write takes.
const TAKE_FRAMES: usize = 64;

impl Link {
    /// A connection that has not had its snapshot yet.
    #[must_use]
    pub fn new(id: ConnectionId, user: Option<UserId>, wishes: Wishes, now_ms: i64) -> Self {
        Self {
            id,
            user,
            wishes,
            attached: AtomicBool::new(false),
            seen_ms: AtomicI64::new(now_ms),
            outbox: Mutex::default(),
        }
    }

    /// Whether it is a WebSocket. A reader of events is a connection, but nobody's presence.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        matches!(self.wishes.mode, Mode::Socket | Mode::RawSocket)
    }

    /// Notes that it was heard of.
    pub fn stir(&self, now_ms: i64) {
        self.seen_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When it was last heard of. A reader of events is never heard of: it is there as long as it can be
    /// written to.
    #[must_use]
    pub fn seen_ms(&self) -> i64 {
        match self.wishes.mode {
            Mode::Events | Mode::RawEvents => i64::MAX,
            Mode::Socket | Mode::RawSocket => self.seen_ms.load(Ordering::Relaxed),
        }
    }

    /// The first frames: the snapshot and what was missed. From now on it hears everything.
    pub fn attach<'a>(&self, frames: impl Iterator<Item = &'a Frame>) {
        let mut outbox = self.outbox();
        if !outbox.ended {
            outbox.queue.extend(frames.filter_map(|frame| frame.encoded(self.wishes.mode)));
            outbox.uncounted = outbox.queue.len();
        }
        self.attached.store(true, Ordering::Release);
        wake(outbox);
    }

    /// Puts a frame into the queue, if the connection wants it. Never waits.
    pub fn push(&self, frame: &Frame, bounds: QueueBounds) -> Pushed {
        if !self.attached.load(Ordering::Acquire) || !self.wants(frame) {
            return Pushed::Skipped;
        }
        match frame.encoded(self.wishes.mode) {
            Some(bytes) => self.push_bytes(bytes, bounds),
            None => Pushed::Skipped,
        }
    }

    /// Puts encoded bytes into the queue: an answer to this connection alone.
    pub fn push_bytes(&self, bytes: Bytes, bounds: QueueBounds) -> Pushed {
        let mut outbox = self.outbox();
        if outbox.ended || outbox.close.is_some() {
            return Pushed::Skipped;
        }
        let counted = outbox.queue.len() - outbox.uncounted;
        if counted >= bounds.frames || outbox.bytes + bytes.len() > bounds.bytes {
            let dropped = outbox.queue.len() as u64 + 1;
            outbox.give_up(Close::Slow);
            wake(outbox);
            return Pushed::Overflowed(dropped);
        }
        outbox.bytes += bytes.len();
        outbox.queue.push_back(bytes);
        wake(outbox);
        Pushed::Queued
    }

    /// Tells it that something it sent was not taken. A raw one, which understands no frames, is closed.
    pub fn tell_error(&self, word: &'static str, id: Option<&str>, bounds: QueueBounds) {
        if self.wishes.mode != Mode::Socket {
            return self.close(Close::Refused);
        }
        let error = match id {
            Some(id) => serde_json::json!({"type": "error", "error": word, "id": id}),
            None => serde_json::json!({"type": "error", "error": word}),
        };
        let _full_is_slow = self.push_bytes(text_frame(&error.to_string()), bounds);
    }

    /// Asks it whether it is still there; a reader of events proves it by taking the bytes.
    pub fn ping(&self, bounds: QueueBounds) {
        let bytes = match self.is_socket() {
            true => data_frame(OpCode::Control(Control::Ping), b""),
            false => Bytes::from_static(b": ping\n\n"),
        };
        let _full_is_slow = self.push_bytes(bytes, bounds);
    }

    fn wants(&self, frame: &Frame) -> bool {
        match frame.kind() {
            Kind::Message => self.wishes.echo || frame.origin() != Some(self.id),
            Kind::Join | Kind::Leave | Kind::Update => self.wishes.presence,
            Kind::Presence => true,
        }
    }

    /// Closes the connection once what waits is written. The first reason counts.
    pub fn close(&self, close: Close) {
        let mut outbox = self.outbox();
        if !outbox.ended && outbox.close.is_none() {
            outbox.close = Some(close);
            wake(outbox);
        }
    }

    /// The connection's task is gone: nothing is kept for it.
    pub fn end(&self) {
        *self.outbox() = Outbox { ended: true, ..Outbox::default() };
    }

    /// Moves what waits into `frames`, as much as is written at a time; waits for something to do.
    pub fn poll_take(&self, context: &mut Context<'_>, frames: &mut VecDeque<Bytes>) -> Poll<Next> {
        let mut outbox = self.outbox();
        let mut bytes = 0;
        while bytes < TAKE_BYTES && frames.len() < TAKE_FRAMES {
            let Some(frame) = outbox.queue.pop_front() else { break };
            bytes += frame.len();
            match outbox.uncounted.checked_sub(1) {
                Some(rest) => outbox.uncounted = rest,
                None => outbox.bytes -= frame.len(),
            }
            frames.push_back(frame);
        }
        if bytes > 0 {
            return Poll::Ready(Next::Frames);
        }
        // An idle connection keeps no room for what it once had to say.
        outbox.queue = VecDeque::new();
        match outbox.close {
            Some(close) => Poll::Ready(Next::Close(close)),
            None => {
                outbox.wait(context);
                Poll::Pending
            }
        }
    }

    /// Whether the room has given the connection up, while it is busy writing: why. Waits for that otherwise.
    pub fn poll_given_up(&self, context: &mut Context<'_>) -> Poll<Option<Close>> {
        let mut outbox = self.outbox();
        if outbox.close == Some(Close::Slow) {
            return Poll::Ready(outbox.close);
        }
        outbox.wait(context);
        Poll::Pending
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // Whoever panicked left the queue whole: every change of it is one step.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox {
    fn wait(&mut self, context: &Context<'_>) {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
    }

    /// What waits is dropped: the connection learns from the code that it has missed something.
    fn give_up(&mut self, close: Close) {
        *self = Self { close: Some(close), waker: self.waker.take(), ..Self::default() };
    }
}

/// Wakes the task outside of the lock that it is going to take.
fn wake(mut outbox: MutexGuard<'_, Outbox>) {
    let waker = outbox.waker.take();
    drop(outbox);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: QueueBounds = QueueBounds { frames: 3, bytes: 10 };

    fn link() -> Link {
        let wishes = Wishes { mode: Mode::Socket, echo: true, presence: true };
        Link::new(ConnectionId(1), None, wishes, 0)
    }

    fn take(link: &Link) -> (Poll<Next>, usize) {
        let mut frames = VecDeque::new();
        let next = link.poll_take(&mut Context::from_waker(Waker::noop()), &mut frames);
        (next, frames.len())
    }

    #[test]
    fn a_queue_has_both_bounds_and_beyond_them_the_link_is_slow() {
        let (by_frames, by_bytes) = (link(), link());
        for _ in 0..3 {
            assert_eq!(by_frames.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Queued);
        }
        assert_eq!(by_frames.push_bytes(Bytes::new(), BOUNDS), Pushed::Overflowed(4));
        assert_eq!(by_frames.push_bytes(Bytes::new(), BOUNDS), Pushed::Skipped);
        assert!(matches!(take(&by_frames), (Poll::Ready(Next::Close(Close::Slow)), 0)));

        assert_eq!(by_bytes.push_bytes(Bytes::from_static(b"0123456789"), BOUNDS), Pushed::Queued);
        assert_eq!(by_bytes.push_bytes(Bytes::from_static(b"!"), BOUNDS), Pushed::Overflowed(2));
    }

    #[test]
    fn what_is_taken_makes_room() {
        let link = link();
        for _ in 0..10 {
            assert_eq!(link.push_bytes(Bytes::from_static(b"0123456789"), BOUNDS), Pushed::Queued);
            assert!(matches!(take(&link), (Poll::Ready(Next::Frames), 1)));
        }
        assert!(matches!(take(&link), (Poll::Pending, 0)));
    }

    #[test]
    fn what_waits_is_written_before_a_close_and_the_first_reason_counts() {
        let link = link();
        link.push_bytes(Bytes::from_static(b"abc"), BOUNDS);
        link.close(Close::Left);
        link.close(Close::Idle);
        assert_eq!(link.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Skipped);
        assert!(matches!(take(&link), (Poll::Ready(Next::Frames), 1)));
        assert!(matches!(take(&link), (Poll::Ready(Next::Close(Close::Left)), 0)));
    }

    #[test]
    fn an_ended_link_keeps_nothing() {
        let link = link();
        link.push_bytes(Bytes::from_static(b"abc"), BOUNDS);
        link.end();
        assert_eq!(link.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Skipped);
        assert!(matches!(take(&link), (Poll::Pending, 0)));
    }
}
