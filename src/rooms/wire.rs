//! A WebSocket's connection as the library sees it: reads come from it, writes are collected for ours, which
//! writes many shared frames in one call.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

use bytes::Bytes;
use tokio::net::TcpStream;

use super::boundary::Boundary;

/// Frames that are written at a time.
const WRITE_FRAMES: usize = 64;

/// See the module.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
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
        Self { stream, answers: Vec::new(), writing: VecDeque::new(), written: 0, boundary }
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

    /// The queue of frames to write.
    pub(super) fn writing(&mut self) -> &mut VecDeque<Bytes> {
        &mut self.writing
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
        let mut slices = [IoSlice::new(&[]); WRITE_FRAMES];
        let mut count = 0;
        for (slice, frame) in slices.iter_mut().zip(&self.writing) {
            let from = if count == 0 { self.written } else { 0 };
            *slice = IoSlice::new(frame.get(from..).unwrap_or_default());
            count += 1;
        }
        let mut written = self.stream.try_write_vectored(slices.get(..count).unwrap_or_default())?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        written += self.written;
        while let Some(first) = self.writing.front() {
            if written < first.len() {
                break;
            }
            written -= first.len();
            self.writing.pop_front();
        }
        self.written = written;
        Ok(())
    }
}
