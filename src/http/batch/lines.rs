//! A body that comes as lines, taken one at a time, however it was cut on its way.
//!
//! No more is read than is asked for: whoever takes no lines holds up whoever sends them.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;

/// What was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Lines are numbered from 1; empty ones have a number and are passed over.
    pub number: u64,
    pub what: What,
}

/// See [`Taken`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Without its end.
    Line(Bytes),
    /// Above the limit; nothing of it was kept.
    TooLong,
    /// Neither this line nor one after it is taken.
    Stopped(Stop),
}

/// Why there are no more lines, but for the body's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing came for too long.
    Idle,
    /// The body broke off. What there was of a line is none: nobody knows its end.
    Incomplete,
    /// The service stops.
    Draining,
}

/// Bounds of a stream.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// `bulk.max_line_bytes`
    pub max_line_bytes: usize,
    /// `bulk.idle_timeout_ms`
    pub idle_timeout: Duration,
}

/// The lines of a body.
#[derive(Debug)]
pub(super) struct Lines {
    body: BodyDataStream,
    bounds: Bounds,
    draining: CancellationToken,
    /// Read and not taken.
    read: BytesMut,
    /// So much of it is known to hold no line's end.
    scanned: usize,
    /// Whether the beginning of this line was thrown away.
    too_long: bool,
    number: u64,
    ended: bool,
}

impl Lines {
    pub(super) fn new(body: Body, bounds: Bounds, draining: CancellationToken) -> Self {
        Self {
            body: body.into_data_stream(),
            bounds,
            draining,
            read: BytesMut::new(),
            scanned: 0,
            too_long: false,
            number: 0,
            ended: false,
        }
    }

    pub(super) fn stream(self) -> impl Stream<Item = Taken> + Send {
        stream::unfold(self, async |mut lines| {
            let taken = lines.next().await?;
            Some((taken, lines))
        })
    }

    async fn next(&mut self) -> Option<Taken> {
        loop {
            let unseen = self.read.get(self.scanned..).unwrap_or_default();
            if let Some(at) = unseen.iter().position(|byte| *byte == b'\n') {
                let mut line = self.read.split_to(self.scanned + at + 1);
                line.truncate(line.len() - 1);
                if let Some(taken) = self.line(line) {
                    return Some(taken);
                }
                continue;
            }
            if self.ended {
                let rest = self.read.split();
                let nothing = rest.is_empty() && !self.too_long;
                return if nothing { None } else { self.line(rest) };
            }
            self.too_long |= self.read.len() > self.bounds.max_line_bytes;
            if self.too_long {
                self.read.clear();
            }
            self.scanned = self.read.len();
            if let Err(stop) = self.read_on().await {
                self.ended = true;
                self.too_long = false;
                self.read.clear();
                self.scanned = 0;
                return Some(Taken { number: self.number + 1, what: What::Stopped(stop) });
            }
        }
    }

    /// A whole line; nothing of an empty one.
    fn line(&mut self, line: BytesMut) -> Option<Taken> {
        self.scanned = 0;
        self.number += 1;
        let too_long = std::mem::take(&mut self.too_long) || line.len() > self.bounds.max_line_bytes;
        let what = match too_long {
            true => What::TooLong,
            false if line.trim_ascii().is_empty() => return None,
            false => What::Line(line.freeze()),
        };
        Some(Taken { number: self.number, what })
    }

    async fn read_on(&mut self) -> Result<(), Stop> {
        let more = tokio::time::timeout(self.bounds.idle_timeout, self.body.next());
        let more = tokio::select! {
            more = more => more.map_err(|_| Stop::Idle)?,
            () = self.draining.cancelled() => return Err(Stop::Draining),
        };
        match more {
            Some(Ok(bytes)) => self.read.extend_from_slice(&bytes),
            Some(Err(_)) => return Err(Stop::Incomplete),
            None => self.ended = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Frame = Result<Bytes, std::io::Error>;

    fn lines(frames: Vec<Frame>, max_line_bytes: usize) -> Lines {
        let bounds = Bounds { max_line_bytes, idle_timeout: Duration::from_secs(3_600) };
        Lines::new(Body::from_stream(stream::iter(frames)), bounds, CancellationToken::new())
    }

    fn take_all(frames: Vec<Frame>, max_line_bytes: usize) -> Vec<(u64, What)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let taken = lines(frames, max_line_bytes).stream().map(|taken| (taken.number, taken.what));
        runtime.block_on(taken.collect())
    }

    fn whole(text: &str) -> Vec<Frame> {
        vec![Ok(Bytes::copy_from_slice(text.as_bytes()))]
    }

    fn line(text: &str) -> What {
        What::Line(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_are_numbered_and_empty_ones_passed_over() {
        let taken = take_all(whole("a\n\r\n\n  \nb\r\nc"), 10);
        assert_eq!(taken, [(1, line("a")), (5, line("b\r")), (6, line("c"))]);
        assert_eq!(take_all(whole(""), 10), []);
        assert_eq!(take_all(whole("\n"), 10), []);
    }

    #[test]
    fn a_line_above_the_limit_is_one_problem_and_the_next_one_is_taken() {
        let text = format!("{}\n{}\n{}\nb", "a".repeat(10), "a".repeat(11), "a".repeat(1_000));
        let expected = [(1, line("aaaaaaaaaa")), (2, What::TooLong), (3, What::TooLong), (4, line("b"))];
        assert_eq!(take_all(whole(&text), 10), expected);
        assert_eq!(take_all(whole(&"a".repeat(11)), 10), [(1, What::TooLong)]);
    }

    #[test]
    fn a_body_that_breaks_off_ends_with_no_half_a_line() {
        let broken = || Err(std::io::Error::other("gone"));
        let frames = vec![Ok(Bytes::from_static(b"a\nb")), broken()];
        assert_eq!(take_all(frames, 10), [(1, line("a")), (2, What::Stopped(Stop::Incomplete))]);
    }

    #[test]
    fn whoever_drains_takes_no_more() {
        let stop = CancellationToken::new();
        stop.cancel();
        let bounds = Bounds { max_line_bytes: 10, idle_timeout: Duration::from_secs(3_600) };
        let body = Body::from_stream(stream::pending::<Frame>());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let taken: Vec<_> = runtime.block_on(Lines::new(body, bounds, stop).stream().collect());
        assert_eq!(taken, [Taken { number: 1, what: What::Stopped(Stop::Draining) }]);
    }

    proptest! {
        /// However the network cuts it.
        #[test]
        fn cuts_change_nothing(
            text in "[ab\\n\\r ]{0,200}",
            cuts in prop::collection::vec(0..200_usize, 0..20),
            max in 1..12_usize,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let frames = cuts.windows(2).map(|cut| Ok(Bytes::copy_from_slice(&text.as_bytes()[cut[0]..cut[1]])));
            prop_assert_eq!(take_all(frames.collect(), max), take_all(whole(&text), max));
        }
    }
}
