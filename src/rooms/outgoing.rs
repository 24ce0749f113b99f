//! Writing the frames of a queue to a connection, many in one call.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::Bytes;
use tokio::net::TcpStream;

/// Frames that are written at a time.
const WRITE_FRAMES: usize = 64;

/// Writes what the system takes of the first frames, `begun` bytes of the very first being written already. The frames
/// that are whole now are given to `done`; so many bytes of the then first are written.
///
/// # Errors
/// The system's.
pub(super) fn write_first(
    stream: &TcpStream,
    frames: &mut VecDeque<Bytes>,
    begun: usize,
    mut done: impl FnMut(&Bytes),
) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); WRITE_FRAMES];
    let mut count = 0;
    for (slice, frame) in slices.iter_mut().zip(&*frames) {
        let from = if count == 0 { begun } else { 0 };
        *slice = IoSlice::new(frame.get(from..).unwrap_or_default());
        count += 1;
    }
    let mut written = stream.try_write_vectored(slices.get(..count).unwrap_or_default())?;
    if written == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    written += begun;
    while let Some(first) = frames.front().filter(|first| written >= first.len()) {
        written -= first.len();
        done(first);
        frames.pop_front();
    }
    Ok(written)
}
