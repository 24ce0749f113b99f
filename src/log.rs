//! The log: structured lines on standard error, JSON or for humans, written by a thread of its own.
//!
//! A reader that stalls must not stall decisions: lines beyond `log.queue_lines` are dropped and counted.
//! The truth about decisions is in the store; the log is a view of it.

pub mod decisions;
pub mod tail;

use std::io::{BufWriter, IsTerminal, Write};

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{Log, LogFormat, LogLevel};

/// Keeps the writer alive; dropped last, it writes what is queued.
#[derive(Debug)]
pub struct LogGuard {
    _writer: WorkerGuard,
    dropped: ErrorCounter,
}

impl LogGuard {
    /// Counts dropped lines.
    #[must_use]
    pub fn dropped(&self) -> ErrorCounter {
        self.dropped.clone()
    }
}

/// Starts the log for the whole process, on standard error.
///
/// # Errors
/// When a log was started before.
pub fn start(settings: &Log) -> Result<LogGuard, TryInitError> {
    let to = std::io::stderr();
    let shape = Shape::of(settings.format, to.is_terminal());
    start_shaped(settings, shape, to)
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Json,
    Human,
}

impl Shape {
    fn of(format: LogFormat, for_a_terminal: bool) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Human => Self::Human,
            LogFormat::Auto if for_a_terminal => Self::Human,
            LogFormat::Auto => Self::Json,
        }
    }
}

/// The same, with the lines going to `sink`, which is no terminal.
///
/// # Errors
/// When a log was started before.
pub fn start_into(settings: &Log, sink: impl Write + Send + 'static) -> Result<LogGuard, TryInitError> {
    start_shaped(settings, Shape::of(settings.format, false), sink)
}

fn start_shaped(
    settings: &Log,
    shape: Shape,
    sink: impl Write + Send + 'static,
) -> Result<LogGuard, TryInitError> {
    // Buffered: the writer's thread flushes whenever its queue is empty, so a busy log costs one system
    // call for many lines and a quiet one is never late.
    let writer = BufWriter::with_capacity(1 << 16, sink);
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(settings.queue_lines)
        .lossy(true)
        .thread_name("log")
        .finish(writer);
    let dropped = writer.error_counter();
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    if settings.decisions {
        decisions::start(writer.clone(), shape);
    }
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::INFO))
        // Its start-up is told line by line at INFO.
        .with_target("tokio_cron_scheduler", level.min(LevelFilter::WARN))
        .with_target("headcount", level);
    let registry = tracing_subscriber::registry().with(filter);
    match shape {
        Shape::Json => {
            let json = tracing_subscriber::fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .with_span_list(false)
                .with_writer(writer);
            registry.with(json).try_init()?;
        }
        Shape::Human => {
            let human = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
            registry.with(human).try_init()?;
        }
    }
    Ok(LogGuard { _writer: guard, dropped })
}
