//! A WebSocket's connection as the library sees it: reads come from it, writes are collected for ours, which
//! writes many shared frames in one call.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::boundary::Boundary;
use super::outgoing::write_first;

/// See the module.
pub(super) struct Wire {
    pub(super) stream: Arc<TcpStream>,
    /// What the library wants to say, yet to be queued.
    answers: Vec<u8>,
    /// Frames being written, and how much of the first is.
    writing: VecDeque<Bytes>,
    written: usize,
    /// Where in a message the bytes end that the library has been given.
    pub(super) boundary: Boundary,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.try_read(buffer)?;
        self.boundary.follow(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Wire {
    pub(super) fn new(stream: TcpStream, already_read: &[u8]) -> Self {
        let mut boundary = Boundary::default();
        boundary.follow(already_read);
        Self { stream: Arc::new(stream), answers: Vec::new(), writing: VecDeque::new(), written: 0, boundary }
    }

    /// Whether the library has something to say that is not queued yet.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Queues what the library wants to say.
    pub(super) fn queue_answers(&mut self) {
        if self.has_answers() {
            self.writing.push_back(std::mem::take(&mut self.answers).into());
        }
    }

    /// The connection, and the queue of frames to write to it.
    pub(super) fn parts(&mut self) -> (&Arc<TcpStream>, &mut VecDeque<Bytes>) {
        (&self.stream, &mut self.writing)
    }

    /// Queues a frame.
    pub(super) fn queue(&mut self, frame: Bytes) {
        self.writing.push_back(frame);
    }

    /// Queues the rest of a frame before everything else.
    pub(super) fn finish_first(&mut self, frame: Bytes, written: usize) {
        self.writing.push_front(frame);
        self.written = written;
    }

    /// So much of the first frame is written already.
    pub(super) fn go_on_from(&mut self, written: usize) {
        self.written = written;
    }

    /// Says that nothing more will be written.
    pub(super) fn shut_down(&self) {
        let _best_effort = SockRef::from(&*self.stream).shutdown(Shutdown::Write);
    }

    /// Frames that are queued.
    pub(super) fn queued(&self) -> usize {
        self.writing.len()
    }

    /// Whether all that was queued is written. An idle connection then keeps no room for it.
    pub(super) fn is_written(&mut self) -> bool {
        let written = self.writing.is_empty();
        if written {
            self.writing = VecDeque::new();
        }
        written
    }

    /// Forgets what is queued, but for a frame that is half written: that has to be finished.
    pub(super) fn forget_queued(&mut self) {
        self.writing.truncate(usize::from(self.written > 0));
    }

    /// Writes what the system takes.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write_some(&mut self) -> io::Result<()> {
        self.written = write_first(&self.stream, &mut self.writing, self.written, |_| ())?;
        Ok(())
    }
}
