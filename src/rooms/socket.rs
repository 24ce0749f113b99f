//! A WebSocket's own task: reads what it says, writes what its room says, answers pings and keep-alives by
//! itself. Small on purpose, for there are many of them: an idle one holds no timer, no queue, and nothing of
//! the library.
//!
//! The library parses and checks; it is there from a message's first byte to its last. Frames of the room are
//! written as they are, encoded once for all sockets.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::TcpStream;
use tokio::time::Sleep;
use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message as Heard, Utf8Bytes};

use super::admission::Membership;
use super::close::Close;
use super::command::Command;
use super::link::Next;
use super::presence::End;
use super::rate::Bucket;
use super::room::Rejected;
use super::said::understand;
use super::wire::Wire;

/// The library's buffer for what a socket says; larger messages grow it for as long as they come.
const READ_BUFFER_BYTES: usize = 1024;
/// A socket that sends pings without reading the answers is not read either beyond so many.
const UNREAD_ANSWERS: usize = 128;
/// Steps before other tasks get their turn.
const STEPS: usize = 32;

/// See the module.
pub struct Socket {
    membership: Membership,
    /// The library's part. Its buffers grow with the largest message and never shrink, so it is let go of where
    /// a message has ended and nothing of the next one has come.
    protocol: Option<Box<WebSocketContext>>,
    wire: Wire,
    phase: Phase,
    rate: Bucket,
    /// A command that waits for room in the room's queue; nothing is read meanwhile.
    held: Option<Box<Command>>,
    /// Whether the room may write to the connection now.
    left_to_room: bool,
    /// Set while closing, and only then.
    deadline: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// We have said goodbye and wait for the other side's.
    Closing(Close),
    /// The other side broke the rules; what it still sends is not looked at.
    Lingering(Close),
    /// The other side has said goodbye; ours is on its way.
    Leaving,
}

impl Socket {
    /// A socket on a connection whose handshake is done; `already_read` are bytes that came with it.
    #[must_use]
    pub fn new(mut membership: Membership, stream: TcpStream, already_read: &[u8]) -> Self {
        // From here on, an end without a goodbye is a loss.
        membership.end = End::Lost;
        let settings = membership.rooms.settings();
        let protocol = (!already_read.is_empty()).then(|| protocol(settings.max_message_bytes, already_read));
        let rate = Bucket::full(settings.socket_messages_per_s, membership.rooms.now_ms());
        Self {
            membership,
            protocol,
            wire: Wire::new(stream, already_read),
            phase: Phase::Open,
            rate,
            held: None,
            left_to_room: false,
            deadline: None,
        }
    }

    /// Runs until the connection ends.
    pub async fn run(mut self) {
        let cause = poll_fn(|context| self.poll(context)).await;
        self.membership.count_end(cause);
    }

    /// The same, for as long as its token is good: it comes back with a new one and goes on where it was.
    pub async fn run_with_token(self, token_ended: impl Future<Output = ()>) {
        let link = Arc::clone(&self.membership.link);
        let mut run = pin!(self.run());
        tokio::select! {
            () = &mut run => return,
            () = token_ended => link.close(Close::TokenExpired),
        }
        run.await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<&'static str> {
        let ended = self.poll_steps(context);
        // Last: a step may have set it.
        match &mut self.deadline {
            Some(deadline) if ended.is_pending() => deadline.as_mut().poll(context).map(|()| self.cause()),
            _ => ended,
        }
    }

    fn poll_steps(&mut self, context: &mut Context<'_>) -> Poll<&'static str> {
        for _ in 0..STEPS {
            let written = self.poll_write(context);
            if written.is_err() {
                return Poll::Ready(self.cause());
            }
            if self.phase == Phase::Leaving && self.wire.queued() == 0 {
                return Poll::Ready(self.cause());
            }
            match self.poll_read(context) {
                Poll::Pending if !self.wire.has_answers() && !self.has_news(written.is_ok_and(|all| all)) => {
                    return Poll::Pending;
                }
                Poll::Pending | Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(end)) => {
                    if let Some(end) = end {
                        self.membership.end = end;
                    }
                    // The last words, as far as they go without waiting.
                    let _best_effort = self.poll_write(context);
                    return Poll::Ready(self.cause());
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether reading has left something to write that waits for nobody.
    fn has_news(&self, all_was_written: bool) -> bool {
        all_was_written && self.wire.queued() > 0
    }

    /// Why it ended, for the metrics.
    fn cause(&self) -> &'static str {
        match self.phase {
            Phase::Open => "lost",
            Phase::Leaving => "client",
            Phase::Closing(close) | Phase::Lingering(close) => close.word(),
        }
    }

    /// Writes what there is. True if all of it is written.
    fn poll_write(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        loop {
            self.wire.queue_answers();
            if self.wire.is_written() {
                if self.phase != Phase::Open {
                    return Ok(true);
                }
                let (stream, frames) = self.wire.parts();
                let next = self.membership.link.poll_take(context, frames, Some(stream));
                self.left_to_room = next.is_pending();
                match next {
                    Poll::Pending => return Ok(true),
                    Poll::Ready(Next::Frames { begun }) => self.wire.go_on_from(begun),
                    Poll::Ready(Next::Close(close)) => self.close(close),
                }
                continue;
            }
            if std::mem::take(&mut self.left_to_room)
                && let Some((frame, begun)) = self.membership.link.take_back()
            {
                self.wire.finish_first(frame, begun);
            }
            match self.wire.write_some() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // One that cannot even be told is closed by its deadline.
                    self.notice_close(context);
                    match self.wire.stream.poll_write_ready(context) {
                        Poll::Pending => return Ok(false),
                        Poll::Ready(ready) => ready?,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// While a write is stuck, the connection may have to be closed all the same.
    fn notice_close(&mut self, context: &mut Context<'_>) {
        if self.phase == Phase::Open
            && let Poll::Ready(close) = self.membership.link.poll_close(context)
        {
            self.wire.forget_queued();
            self.close(close);
            self.wire.queue_answers();
        }
    }

    /// Reads one message, if there is one. An error is the end: of which kind, if it says so.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Option<End>>> {
        if let Some(held) = self.held.take() {
            self.offer(*held, context);
        }
        if self.held.is_some() || self.wire.queued() > UNREAD_ANSWERS {
            return Poll::Pending;
        }
        if matches!(self.phase, Phase::Lingering(_)) {
            return self.poll_discard(context).map(Err);
        }
        if self.protocol.is_none() {
            match self.wire.stream.poll_read_ready(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ready) => ready.map_err(|_| None)?,
            }
        }
        let max_message_bytes = self.membership.rooms.settings().max_message_bytes;
        let library = self.protocol.get_or_insert_with(|| protocol(max_message_bytes, &[]));
        match library.read(&mut self.wire) {
            Ok(heard) => self.heard(heard, context),
            // Both have said goodbye; where ours was the answer, it has yet to be written.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                return match self.phase {
                    Phase::Leaving => Poll::Pending,
                    _ => Poll::Ready(Err(None)),
                };
            }
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                // What it had to say is collected, and it holds no byte of a message.
                if self.phase == Phase::Open && self.wire.boundary.is_here() {
                    self.protocol = None;
                }
                return self.wire.stream.poll_read_ready(context).map(|ready| ready.map_err(|_| None));
            }
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(Error::Io(_) | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => {
                return Poll::Ready(Err(None));
            }
            Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => self.refuse(Close::TooBig),
            Err(Error::Utf8(_)) => self.refuse(Close::NotUtf8),
            Err(_) => self.refuse(Close::Protocol),
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and looks at nothing, so that the close frame is not lost with a reset connection.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<Option<End>> {
        if self.wire.queued() == 0 && !self.wire.has_answers() {
            self.wire.shut_down();
        }
        let mut unread = [0; 2048];
        loop {
            match self.wire.stream.try_read(&mut unread) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.wire.stream.poll_read_ready(context) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(_)) => return Poll::Ready(None),
                    }
                }
                _ => return Poll::Ready(None),
            }
        }
    }

    fn heard(&mut self, heard: Heard, context: &mut Context<'_>) {
        self.membership.link.stir(self.membership.rooms.now_ms());
        match heard {
            Heard::Close(_) if self.phase == Phase::Open => {
                self.phase = Phase::Leaving;
                // Whatever becomes of our answer.
                self.membership.end = End::Clean;
                self.set_deadline();
                // Collects our goodbye; that it is the last thing to be said is no error.
                if let Some(library) = &mut self.protocol {
                    let _closed = library.flush(&mut self.wire);
                }
            }
            Heard::Text(text) if self.phase == Phase::Open => self.heard_text(&text, context),
            Heard::Binary(_) if self.phase == Phase::Open => self.refuse(Close::NotText),
            // Pings are answered by the library; what comes after a goodbye is not looked at.
            _ => {}
        }
    }

    fn heard_text(&mut self, text: &str, context: &mut Context<'_>) {
        let settings = self.membership.rooms.settings();
        let meter = self.membership.rooms.meter();
        meter.message();
        if !text.is_empty() && *text == *settings.keepalive_request {
            meter.keepalive();
            self.wire.queue(settings.keepalive_response.clone());
            return;
        }
        let now_ms = self.membership.rooms.now_ms();
        if !self.rate.take(settings.socket_messages_per_s, now_ms) {
            return self.close(Close::RateLimited);
        }
        let link = &self.membership.link;
        let command = match understand(link, text, settings.max_meta_bytes) {
            Ok(command) => command,
            Err(word) => return link.tell_error(word, None, settings.limits.queue),
        };
        match self.membership.may_say(now_ms) {
            Ok(()) => self.offer(command, context),
            Err(denied) => link.tell_error(denied.word(), command.message_id(), settings.limits.queue),
        }
    }

    fn offer(&mut self, command: Command, context: &mut Context<'_>) {
        match self.membership.offer(command, context.waker()) {
            Ok(()) => {}
            Err(Rejected::Full(command)) => self.held = Some(Box::new(command)),
            // A room is forgotten only when it has no connections, so this one is on its way out.
            Err(Rejected::Gone(_)) => self.close(Close::Idle),
        }
    }

    /// Says goodbye and waits for the other side's, up to a deadline.
    fn close(&mut self, close: Close) {
        if self.phase != Phase::Open {
            return;
        }
        self.phase = Phase::Closing(close);
        if !close.may_come_back() {
            self.membership.end = End::Clean;
        }
        self.set_deadline();
        let frame = CloseFrame { code: close.code().into(), reason: Utf8Bytes::from(close.reason()) };
        // The frame is collected for writing, which cannot fail here.
        let max_message_bytes = self.membership.rooms.settings().max_message_bytes;
        let library = self.protocol.get_or_insert_with(|| protocol(max_message_bytes, &[]));
        let _collected = library.close(&mut self.wire, Some(frame));
    }

    fn set_deadline(&mut self) {
        let timeout = self.membership.rooms.settings().close_timeout;
        self.deadline = Some(Box::pin(tokio::time::sleep(timeout)));
    }

    /// Closes on one that broke the rules: nothing that it sends is looked at any more.
    fn refuse(&mut self, close: Close) {
        match self.phase {
            Phase::Open => {
                self.close(close);
                self.phase = Phase::Lingering(close);
            }
            Phase::Closing(before) => self.phase = Phase::Lingering(before),
            Phase::Leaving | Phase::Lingering(_) => {}
        }
    }
}

/// The library's part of a connection.
fn protocol(max_message_bytes: usize, already_read: &[u8]) -> Box<WebSocketContext> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(max_message_bytes))
        .max_frame_size(Some(max_message_bytes));
    Box::new(WebSocketContext::from_partially_read(already_read.to_vec(), Role::Server, Some(config)))
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("phase", &self.phase).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_util::sync::CancellationToken;

    use crate::rooms::Rooms;
    use crate::rooms::frame::Mode;
    use crate::rooms::link::{Link, Wishes};
    use crate::rooms::room::Room;
    use crate::rooms::state::State;
    use crate::rooms::types::{RoomName, UserId};
    use crate::usage::Usage;

    /// A field too many is paid for by every idle socket. ARCHITECTURE.md says where the bytes go.
    #[tokio::test]
    async fn an_idle_socket_is_small() {
        let clock = crate::partition::Clock::system(0, i64::MAX).unwrap();
        let meter = Arc::clone(&Usage::new(&clock).rooms);
        let stop = CancellationToken::new();
        let config = crate::config::Config::default();
        let rooms = Rooms::start((&config).into(), clock, None, meter, &stop);
        let (room, user) = (RoomName::parse("room", 9).unwrap(), UserId::parse("user", 9));
        let wishes = Wishes { mode: Mode::Socket, echo: true, presence: true };
        let membership = rooms.connect(&room, user, wishes, None, None).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let running = size_of_val(&Socket::new(membership, stream, &[]).run());
        let (link, library) = (size_of::<Link>(), size_of::<WebSocketContext>());
        let (room, state) = (size_of::<Room>(), size_of::<State>());
        println!("socket {running}, link {link}, library {library}, room {room}, state {state}");
        assert!(running <= 512 && link <= 192, "socket {running}, link {link}");
        stop.cancel();
    }
}
