//! One connection as its room sees it: who it is, when it was last heard of, and a bounded queue.
//!
//! An idle link holds no queue at all. The room puts frames in and never waits; the connection's own task
//! takes them out. One that does not keep up is told so and closed; its peers notice nothing.
//!
//! While a socket's task has nothing to write, it leaves its connection to the room, which then writes a frame
//! that comes alone without waking the task for it, and what has gathered where it would be too much.
//!
//! Slow is a connection that does not take its bytes, not one whose task has yet to have its turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::net::TcpStream;
use tungstenite::protocol::frame::coding::{Control, OpCode};

use super::close::Close;
use super::frame::{Frame, Kind, Mode, data_frame, text_frame};
use super::outgoing::write_first;
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
    /// Bytes of the first frame that the room has written already.
    begun: usize,
    /// A socket's connection, while its task leaves the writing to the room.
    left_to_room: Option<Arc<TcpStream>>,
    /// Frames at the front that no bound counts: the snapshot, and what was missed.
    uncounted: usize,
    /// Of the counted ones.
    bytes: usize,
    close: Option<Close>,
    /// The task has bytes that the connection does not take.
    stuck: bool,
    /// Nobody takes anything any more.
    ended: bool,
    waker: Option<Waker>,
}

/// How a frame goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Nothing follows it: the room writes it, where it may.
    Alone,
    /// More may follow: the connection's task writes what has gathered, in one call.
    Gathered,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It is written, or waits to be.
    Queued,
    /// The connection does not want it, or is on its way out.
    Skipped,
    /// There was no room: the connection is closed as slow, and so many frames with this one are dropped.
    Overflowed(u64),
}

/// What the connection's task has to do next.
#[derive(Debug)]
pub enum Next {
    /// Write these; of the first one so many bytes are written.
    Frames {
        /// Bytes of the first frame that the room has written.
        begun: usize,
    },
    /// Everything is written: close.
    Close(Close),
}

/// So many times its bounds a queue may hold while nobody has tried to write it yet.
const UNTRIED: usize = 4;
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
    pub fn push(&self, frame: &Frame, bounds: QueueBounds, pace: Pace) -> Pushed {
        if !self.attached.load(Ordering::Acquire) || !self.wants(frame) {
            return Pushed::Skipped;
        }
        match frame.encoded(self.wishes.mode) {
            Some(bytes) => self.push_at(bytes, bounds, pace),
            None => Pushed::Skipped,
        }
    }

    /// Puts encoded bytes into the queue: an answer to this connection alone.
    pub fn push_bytes(&self, bytes: Bytes, bounds: QueueBounds) -> Pushed {
        self.push_at(bytes, bounds, Pace::Gathered)
    }

    fn push_at(&self, bytes: Bytes, bounds: QueueBounds, pace: Pace) -> Pushed {
        let mut outbox = self.outbox();
        if outbox.ended || outbox.close.is_some() {
            return Pushed::Skipped;
        }
        if pace == Pace::Alone {
            let written = outbox.write(&bytes);
            if written == bytes.len() {
                return Pushed::Queued;
            }
            if written > 0 {
                // No bound can take back what is half written.
                outbox.begun = written;
                outbox.uncounted = 1;
                outbox.queue.push_back(bytes);
                wake(outbox);
                return Pushed::Queued;
            }
        }
        if outbox.is_full(&bytes, bounds, 1) && !outbox.make_room(&bytes, bounds) {
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

    /// Moves what waits into `frames`, as much as is written at a time; waits for something to do, and leaves the
    /// connection to the room meanwhile, if there is one to leave.
    pub fn poll_take(
        &self,
        context: &mut Context<'_>,
        frames: &mut VecDeque<Bytes>,
        connection: Option<&Arc<TcpStream>>,
    ) -> Poll<Next> {
        let mut outbox = self.outbox();
        outbox.stuck = false;
        let mut bytes = 0;
        while bytes < TAKE_BYTES && frames.len() < TAKE_FRAMES {
            let Some(frame) = outbox.queue.pop_front() else { break };
            bytes += frame.len();
            outbox.uncount(&frame);
            frames.push_back(frame);
        }
        if bytes > 0 {
            outbox.left_to_room = None;
            return Poll::Ready(Next::Frames { begun: std::mem::take(&mut outbox.begun) });
        }
        // An idle connection keeps no room for what it once had to say.
        outbox.queue = VecDeque::new();
        match outbox.close {
            Some(close) => {
                outbox.left_to_room = None;
                Poll::Ready(Next::Close(close))
            }
            None => {
                if outbox.left_to_room.is_none() && !outbox.ended {
                    outbox.left_to_room = connection.cloned();
                }
                outbox.wait(context);
                Poll::Pending
            }
        }
    }

    /// From here on only the task writes: first the frame that the room has begun, if it has, with so many bytes of
    /// it written.
    #[must_use]
    pub fn take_back(&self) -> Option<(Bytes, usize)> {
        let mut outbox = self.outbox();
        outbox.left_to_room = None;
        let begun = std::mem::take(&mut outbox.begun);
        let frame = if begun > 0 { outbox.queue.pop_front() } else { None };
        frame.map(|frame| {
            outbox.uncount(&frame);
            (frame, begun)
        })
    }

    /// Why the connection is to be closed, if it is, while it does not take its bytes. Waits for that otherwise.
    pub fn poll_close(&self, context: &mut Context<'_>) -> Poll<Close> {
        let mut outbox = self.outbox();
        if let Some(close) = outbox.close {
            return Poll::Ready(close);
        }
        outbox.stuck = true;
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

    /// Writes as much of a frame as the connection takes at once, if it is the room's to write and nothing waits
    /// before it. What is wrong with a connection, its task finds out.
    fn write(&self, frame: &Bytes) -> usize {
        let stream = self.left_to_room.as_ref().filter(|_| self.queue.is_empty());
        stream.and_then(|stream| stream.try_write(frame).ok()).unwrap_or(0)
    }

    fn is_full(&self, next: &Bytes, bounds: QueueBounds, times: usize) -> bool {
        let counted = self.queue.len() - self.uncounted;
        counted >= bounds.frames.saturating_mul(times)
            || self.bytes + next.len() > bounds.bytes.saturating_mul(times)
    }

    /// Whether there is room for a frame more after all: what waits is written, or nobody has tried to yet.
    fn make_room(&mut self, next: &Bytes, bounds: QueueBounds) -> bool {
        let Some(stream) = self.left_to_room.clone() else {
            return !self.stuck && !self.is_full(next, bounds, UNTRIED);
        };
        while !self.queue.is_empty() {
            let mut queue = std::mem::take(&mut self.queue);
            let written = write_first(&stream, &mut queue, self.begun, |frame| self.uncount(frame));
            self.queue = queue;
            let Ok(begun) = written else { break };
            self.begun = begun;
        }
        !self.is_full(next, bounds, 1)
    }

    /// A frame that is no longer in the queue.
    fn uncount(&mut self, frame: &Bytes) {
        match self.uncounted.checked_sub(1) {
            Some(rest) => self.uncounted = rest,
            None => self.bytes -= frame.len(),
        }
    }

    /// What waits is dropped, but for a frame that is half written: the connection learns from the code that it
    /// has missed something.
    fn give_up(&mut self, close: Close) {
        self.queue.truncate(usize::from(self.begun > 0));
        let (queue, begun, waker) = (std::mem::take(&mut self.queue), self.begun, self.waker.take());
        *self = Self { uncounted: queue.len(), queue, begun, close: Some(close), waker, ..Self::default() };
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
        let next = link.poll_take(&mut Context::from_waker(Waker::noop()), &mut frames, None);
        (next, frames.len())
    }

    /// A link whose connection takes no bytes.
    fn stuck() -> Link {
        let link = link();
        assert!(link.poll_close(&mut Context::from_waker(Waker::noop())).is_pending());
        link
    }

    #[test]
    fn a_queue_has_both_bounds_and_beyond_them_the_link_is_slow() {
        let (by_frames, by_bytes) = (stuck(), stuck());
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
    fn a_link_whose_task_has_yet_to_have_its_turn_is_not_slow_but_bounded() {
        let link = link();
        for _ in 0..UNTRIED * BOUNDS.frames {
            assert_eq!(link.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Queued);
        }
        assert!(matches!(link.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Overflowed(_)));
    }

    #[tokio::test]
    async fn what_gathers_is_written_by_the_room_where_it_would_be_too_much() {
        let (link, stream, mut reader) = left_to_the_room().await;
        for _ in 0..100 {
            assert_eq!(link.push_bytes(Bytes::from_static(b"abc"), BOUNDS), Pushed::Queued);
        }
        let (_, waiting) = take(&link);
        assert!(waiting <= BOUNDS.frames, "{waiting}");
        assert_eq!(read(&mut reader, 3 * (100 - waiting)).await, b"abc".repeat(100 - waiting));
        drop(stream);
    }

    #[test]
    fn what_is_taken_makes_room() {
        let link = link();
        for _ in 0..10 {
            assert!(link.poll_close(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(link.push_bytes(Bytes::from_static(b"0123456789"), BOUNDS), Pushed::Queued);
            assert!(matches!(take(&link), (Poll::Ready(Next::Frames { .. }), 1)));
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
        assert!(matches!(take(&link), (Poll::Ready(Next::Frames { .. }), 1)));
        assert!(matches!(take(&link), (Poll::Ready(Next::Close(Close::Left)), 0)));
    }

    /// A connection, its reader, and a link whose task has left the connection to the room.
    async fn left_to_the_room() -> (Link, Arc<TcpStream>, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (link, stream) = (link(), Arc::new(stream));
        stream.writable().await.unwrap();
        let mut nothing = VecDeque::new();
        let mut context = Context::from_waker(Waker::noop());
        assert!(link.poll_take(&mut context, &mut nothing, Some(&stream)).is_pending());
        (link, stream, reader)
    }

    async fn read(reader: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        tokio::io::AsyncReadExt::read_exact(reader, &mut read).await.unwrap();
        read
    }

    #[tokio::test]
    async fn the_room_writes_what_comes_alone_and_the_task_what_gathers() {
        let (link, stream, mut reader) = left_to_the_room().await;
        assert_eq!(link.push_at(Bytes::from_static(b"one"), BOUNDS, Pace::Alone), Pushed::Queued);
        assert_eq!(read(&mut reader, 3).await, b"one");
        assert_eq!(link.push_at(Bytes::from_static(b"two"), BOUNDS, Pace::Gathered), Pushed::Queued);
        // Overtaking is impossible: the second waits, so the third does.
        assert_eq!(link.push_at(Bytes::from_static(b"three"), BOUNDS, Pace::Alone), Pushed::Queued);
        assert!(matches!(take(&link), (Poll::Ready(Next::Frames { begun: 0 }), 2)));
        // The task has taken something out: the connection is its own again.
        assert_eq!(link.push_at(Bytes::from_static(b"four"), BOUNDS, Pace::Alone), Pushed::Queued);
        assert!(matches!(take(&link), (Poll::Ready(Next::Frames { begun: 0 }), 1)));
        drop(stream);
    }

    /// The same with its connection so full that the room could only begin its last frame; what was written whole.
    async fn begun_by_the_room() -> (Link, Arc<TcpStream>, TcpStream, Vec<u8>, Bytes) {
        // Whether a connection takes part of a frame or none of it depends on how its buffers divide.
        for bytes in (100_003..).step_by(7_001).take(50) {
            let (link, stream, reader) = left_to_the_room().await;
            let frame = Bytes::from((0..=u8::MAX).cycle().take(bytes).collect::<Vec<u8>>());
            let mut whole = Vec::new();
            while link.outbox().queue.is_empty() {
                assert_eq!(link.push_at(frame.clone(), LARGE, Pace::Alone), Pushed::Queued);
                if link.outbox().queue.is_empty() {
                    whole.extend_from_slice(&frame);
                }
            }
            if link.outbox().begun > 0 {
                return (link, stream, reader, whole, frame);
            }
        }
        panic!("no frame was begun");
    }

    const LARGE: QueueBounds = QueueBounds { frames: 3, bytes: 10_000_000 };

    #[tokio::test]
    async fn a_frame_that_the_room_could_only_begin_is_finished_before_anything_else() {
        for taken_back in [false, true] {
            let (link, stream, mut reader, mut expected, frame) = begun_by_the_room().await;
            // Too slow by now: what is begun must be finished all the same.
            while link.push_bytes(Bytes::from_static(b"late"), BOUNDS) == Pushed::Queued {}
            let (first, begun) = match taken_back {
                true => link.take_back().unwrap(),
                false => {
                    let mut frames = VecDeque::new();
                    let mut context = Context::from_waker(Waker::noop());
                    let next = link.poll_take(&mut context, &mut frames, Some(&stream));
                    let Poll::Ready(Next::Frames { begun }) = next else { panic!("{next:?}") };
                    assert_eq!(frames.len(), 1);
                    (frames.pop_front().unwrap(), begun)
                }
            };
            assert!(matches!(take(&link), (Poll::Ready(Next::Close(Close::Slow)), 0)));
            let mut seen = read(&mut reader, expected.len() + begun).await;
            seen.extend_from_slice(&first[begun..]);
            expected.extend_from_slice(&frame);
            assert!(seen == expected, "the frames are whole and in order");
        }
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
