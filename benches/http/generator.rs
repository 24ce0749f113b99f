//! The load generator: HTTP/1.1 keep-alive, one request in flight a connection; closed loop, or open at a pace (`pace.rs`).
//!
//! It shares two cores with the server it measures, so it does as little as it can: a write, a read and a share of an
//! `epoll_wait` a request. Each thread is a current-thread runtime with its own counts; nothing is shared between them.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::pace::Pace;
use crate::request::{Request, mixed};
use crate::response::{Expect, Head, bad};
use crate::stream;
use crate::tally::Tally;

/// The largest answer that is read, in bytes.
const ANSWER_MAX: usize = 8 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long past its planned end a run may take before it is given up.
const GRACE: Duration = Duration::from_secs(15);
/// A run of a number of requests has no planned end.
const COUNTED_LIMIT: Duration = Duration::from_secs(120);

/// What counts as the answer to a read.
const READ: Expect = Expect::Body(br#""total":"#);

/// How long a run measures, once warm.
#[derive(Clone, Copy)]
pub enum Length {
    Time(Duration),
    Requests(u64),
}

/// A run to be made.
#[derive(Clone)]
pub struct Plan {
    pub address: SocketAddr,
    pub connections: usize,
    pub threads: usize,
    pub warm_up: Duration,
    pub length: Length,
    pub request: Request,
    /// Sent once the request was a success, under the same number; the two then count as one.
    pub then: Option<Request>,
    /// Sent instead of nine of ten requests: a read, which counts for no item.
    pub reads: Option<Request>,
    /// Requests a second that become due, whatever the answers; `None` sends the next one when a connection has its answer.
    pub pace: Option<f64>,
    /// The request is a line, and a connection sends many of them as one body.
    pub is_stream: bool,
    pub expect: Expect,
    /// The number of distinct items that requests may fall on.
    pub items: usize,
    /// Requests are numbered from here; no two runs against one server may share numbers.
    pub first_number: u64,
}

/// A plan with its connections open, so that measuring starts without them.
pub struct Load {
    plan: Plan,
    streams: Vec<Vec<StdTcpStream>>,
}

impl Load {
    pub fn connect(plan: Plan) -> io::Result<Self> {
        let threads = plan.threads.clamp(1, plan.connections);
        let mut streams: Vec<_> = (0..threads).map(|_| Vec::new()).collect();
        for index in 0..plan.connections {
            let stream = StdTcpStream::connect_timeout(&plan.address, CONNECT_TIMEOUT)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            streams[index % threads].push(stream);
        }
        Ok(Self { plan, streams })
    }

    /// Runs to the end. An error on any connection fails the run: the outcome of its last request is unknown.
    pub fn run(self) -> io::Result<Tally> {
        let plan = &self.plan;
        let threads = self.streams.len() as u64;
        let start = Instant::now();
        let results: Vec<io::Result<Tally>> = thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .zip(self.streams)
                .map(|(index, streams)| {
                    scope.spawn(move || Lane::new(plan, start, index, threads).run(plan, streams))
                })
                .collect();
            running
                .into_iter()
                .map(|lane| lane.join().unwrap_or_else(|_| Err(bad("a lane panicked"))))
                .collect()
        });
        let mut total = Tally::new(plan.items);
        for tally in results {
            total.merge(&tally?);
        }
        Ok(total)
    }
}

/// One thread's share of the load: what its connections share.
pub struct Lane {
    expect: Expect,
    warm_at: Instant,
    /// Measuring ends here; a run of a number of requests has no such time.
    end_at: Option<Instant>,
    /// Requests that remain to be measured; `u64::MAX` when time is the limit.
    remaining: Cell<u64>,
    next_number: Cell<u64>,
    /// Threads take every n-th number, so that no two share one.
    stride: u64,
    pace: Option<Pace>,
    last_at: Cell<Instant>,
    tally: RefCell<Tally>,
}

impl Lane {
    fn new(plan: &Plan, start: Instant, index: u64, lanes: u64) -> Self {
        let warm_at = start + plan.warm_up;
        let (end_at, remaining) = match plan.length {
            Length::Time(time) => (Some(warm_at + time), u64::MAX),
            Length::Requests(count) => (None, count / lanes + u64::from(index < count % lanes)),
        };
        Self {
            expect: plan.expect,
            warm_at,
            end_at,
            remaining: Cell::new(remaining),
            next_number: Cell::new(plan.first_number + index),
            stride: lanes,
            pace: plan.pace.map(|pace| Pace::new(pace, (index, lanes), start, end_at.unwrap_or(warm_at))),
            last_at: Cell::new(warm_at),
            tally: RefCell::new(Tally::new(plan.items)),
        }
    }

    fn run(self, plan: &Plan, streams: Vec<StdTcpStream>) -> io::Result<Tally> {
        let limit =
            plan.warm_up + GRACE + self.end_at.map_or(COUNTED_LIMIT, |end| end.duration_since(self.warm_at));
        // At full load, looking at the sockets seldom is cheap; at a pace, an answer must not lie there unseen.
        let interval = if self.pace.is_some() { 16 } else { 256 };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().event_interval(interval).build()?;
        let lane = Rc::new(self);
        let tasks = LocalSet::new();
        let work = tasks.run_until(async {
            let mut connections = Vec::with_capacity(streams.len());
            for stream in streams {
                let stream = TcpStream::from_std(stream)?;
                if plan.is_stream {
                    let lines = stream::connection(stream, plan.request.clone(), Rc::clone(&lane));
                    connections.push(tokio::task::spawn_local(lines));
                    continue;
                }
                connections.push(tokio::task::spawn_local(connection(
                    stream,
                    Requests {
                        request: plan.request.clone(),
                        then: plan.then.clone(),
                        reads: plan.reads.clone(),
                    },
                    Rc::clone(&lane),
                )));
            }
            if let Some(pace) = &lane.pace {
                pace.keep().await?;
            }
            for connection in connections {
                connection.await.map_err(io::Error::other)??;
            }
            Ok::<(), io::Error>(())
        });
        runtime
            .block_on(async { tokio::time::timeout(limit, work).await })
            .map_err(|_| bad("a run did not end"))??;

        let mut tally = lane.tally.borrow().clone();
        let ended_at = match (lane.end_at, &lane.pace) {
            // What became due in time was answered late: the rate says so.
            (Some(end), Some(_)) => end.max(lane.last_at.get()),
            (Some(end), None) => end,
            (None, _) => lane.last_at.get(),
        };
        tally.elapsed = ended_at.saturating_duration_since(lane.warm_at);
        Ok(tally)
    }

    /// The next request of a connection that has been free since `free_at`: its number, and since when it is waited for.
    async fn next(&self, free_at: Instant) -> Option<(u64, Instant)> {
        let Some(pace) = &self.pace else {
            return Some((self.next_number(free_at)?, free_at));
        };
        let due = pace.next().await?;
        let number = self.next_number.get();
        self.next_number.set(number + self.stride);
        Some((number, due))
    }

    /// The number of the next request to send at `now`, unless the run is over.
    pub fn next_number(&self, now: Instant) -> Option<u64> {
        if self.end_at.is_some_and(|end| now >= end) || self.remaining.get() == 0 {
            return None;
        }
        if now >= self.warm_at {
            self.remaining.set(self.remaining.get() - 1);
        }
        let number = self.next_number.get();
        self.next_number.set(number + self.stride);
        Some(number)
    }

    /// Counts an answer to what has been waited for since `sent`: a request for `item`, or a read.
    pub fn record(&self, sent: Instant, answered: Instant, item: Option<usize>, status: u16, body: &[u8]) {
        let expect = if item.is_some() { self.expect } else { READ };
        let met = expect.met(status, body);
        // By time, an answer counts when it arrives in time; by number, when its request was among the numbered ones; at a
        // pace, when it became due in time: one that is late must not be left out for it.
        let measured = match (self.end_at, &self.pace) {
            (Some(end), None) => answered >= self.warm_at && answered < end,
            (_, Some(_)) | (None, None) => sent >= self.warm_at,
        };
        self.last_at.set(answered);
        self.tally.borrow_mut().add(item, status, met, measured.then(|| answered - sent));
    }
}

/// What a connection sends.
struct Requests {
    request: Request,
    then: Option<Request>,
    reads: Option<Request>,
}

/// One connection: a request, its answer, what follows it, and again. The last answer is always awaited, so every request is counted.
async fn connection(mut stream: TcpStream, requests: Requests, lane: Rc<Lane>) -> io::Result<()> {
    let Requests { mut request, mut then, mut reads } = requests;
    let mut buffer = vec![0; ANSWER_MAX];
    let mut free_at = Instant::now();
    while let Some((number, sent)) = lane.next(free_at).await {
        if let Some(read) = reads.as_mut().filter(|_| mixed(number)) {
            read.number(number);
            write_all(&mut stream, read.bytes()).await?;
            let head = read_answer(&mut stream, &mut buffer).await?;
            free_at = Instant::now();
            lane.record(sent, free_at, None, head.status, &buffer[head.body_at..head.end()]);
            continue;
        }
        let item = request.number(number);
        write_all(&mut stream, request.bytes()).await?;
        let mut head = read_answer(&mut stream, &mut buffer).await?;
        if let (Some(then), 200..300) = (&mut then, head.status) {
            then.number(number);
            write_all(&mut stream, then.bytes()).await?;
            head = read_answer(&mut stream, &mut buffer).await?;
        }
        // One reading of the clock a request: an answer's end is the next request's start.
        free_at = Instant::now();
        lane.record(sent, free_at, Some(item), head.status, &buffer[head.body_at..head.end()]);
    }
    Ok(())
}

async fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Reads exactly one answer. `poll_read` and not `try_read`: it knows that a short read emptied the socket, which saves
/// a second read that would only say so.
async fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Head> {
    let mut filled = 0;
    let mut parsed = None;
    loop {
        let mut space = ReadBuf::new(&mut buffer[filled..]);
        poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut space)).await?;
        let read = space.filled().len();
        if read == 0 {
            return Err(bad("a connection closed, or an answer too large, before the answer's end"));
        }
        filled += read;
        if parsed.is_none() {
            parsed = Head::parse(&buffer[..filled])?;
        }
        match parsed {
            Some(head) if filled == head.end() => return Ok(head),
            Some(head) if filled > head.end() => {
                return Err(bad("bytes after the end of an answer"));
            }
            _ => {}
        }
    }
}
