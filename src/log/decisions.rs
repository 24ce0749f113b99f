//! The decision log: one line for each reservation decision.
//!
//! Through the same writer as every other line and in the same format, but written out by hand: at tens of
//! thousands of decisions a second, the general formatter took half of a decision's instructions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;

use tracing_appender::non_blocking::NonBlocking;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::config::LogFormat;

/// What is said of a decision.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields of the answer of the same names")]
pub struct Decision<'a> {
    pub workshop: &'a str,
    pub request: &'a str,
    pub seats: u32,
    pub status: &'static str,
    pub reserved: i64,
    pub replayed: bool,
}

struct DecisionLog {
    writer: NonBlocking,
    format: LogFormat,
}

/// Empty until the log is started with decisions, and in programs that start none.
static LOG: OnceLock<DecisionLog> = OnceLock::new();

pub(super) fn start(writer: NonBlocking, format: LogFormat) {
    let _started_before = LOG.set(DecisionLog { writer, format });
}

/// Logs a decision, after its commit. Never waits: a line too many is dropped and counted.
pub fn decided(decision: &Decision<'_>) {
    if let Some(log) = LOG.get() {
        let line = line(decision, log.format);
        let _dropped_and_counted = log.writer.clone().write_all(line.as_bytes());
    }
}

fn line(decision: &Decision<'_>, format: LogFormat) -> String {
    let Decision { workshop, request, seats, status, reserved, replayed } = *decision;
    let mut line = String::with_capacity(256);
    // Names of workshops and requests hold nothing that JSON escapes. Writing to a String cannot fail.
    let _infallible = match format {
        LogFormat::Json => {
            line.push_str(r#"{"timestamp":""#);
            let _infallible = SystemTime.format_time(&mut Writer::new(&mut line));
            writeln!(
                line,
                r#"","level":"INFO","event":"reservation_decided","workshop":"{workshop}","requestId":"{request}","seats":{seats},"status":"{status}","reserved":{reserved},"replayed":{replayed},"target":"headcount::decisions"}}"#
            )
        }
        LogFormat::Human => {
            let _infallible = SystemTime.format_time(&mut Writer::new(&mut line));
            writeln!(
                line,
                r#"  INFO headcount::decisions: event="reservation_decided" workshop="{workshop}" requestId="{request}" seats={seats} status="{status}" reserved={reserved} replayed={replayed}"#
            )
        }
    };
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_with_every_field() {
        let decision = Decision {
            workshop: "launch-day",
            request: "request-1",
            seats: 2,
            status: "accepted",
            reserved: 4,
            replayed: false,
        };
        let line = line(&decision, LogFormat::Json);
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(line.ends_with("}\n"));
        assert_eq!(json["event"], "reservation_decided");
        assert_eq!((json["seats"].as_i64(), json["replayed"].as_bool()), (Some(2), Some(false)));
        assert!(json["timestamp"].as_str().is_some_and(|time| time.ends_with('Z') && time.contains('T')));
    }
}
