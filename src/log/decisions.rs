//! The decision log: one line for each reservation decision, and for everything that becomes of a reservation.
//!
//! Through the same writer as every other line and in the same format, but written out by hand: at tens of
//! thousands of decisions a second, the general formatter took half of a decision's instructions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use tracing_appender::non_blocking::NonBlocking;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::{Shape, tail};

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

/// What became of a reservation after its first decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Where.
    pub workshop: Arc<str>,
    /// Of which request.
    pub request: Arc<str>,
    /// The word of the event in the workshop's log.
    pub change: &'static str,
    /// The request's seats.
    pub seats: i64,
    /// Seats taken just after.
    pub reserved: i64,
    /// The holder's surrogate. Never the name: what is in a log cannot be forgotten.
    pub holder: Option<i64>,
    /// When the hold or offer ends, where one begins or goes on.
    pub expires_at_ms: Option<i64>,
}

struct DecisionLog {
    writer: NonBlocking,
    shape: Shape,
}

/// Empty until the log is started with decisions, and in programs that start none.
static LOG: OnceLock<DecisionLog> = OnceLock::new();

pub(super) fn start(writer: NonBlocking, shape: Shape) {
    let _started_before = LOG.set(DecisionLog { writer, shape });
}

/// Logs a decision, after its commit. Never waits: a line too many is dropped and counted.
pub fn decided(decision: &Decision<'_>) {
    if let Some(log) = LOG.get() {
        let line = line(decision, log.shape);
        let _dropped_and_counted = log.writer.clone().write_all(line.as_bytes());
    }
    if tail::is_watched() {
        tail::keep(&line(decision, Shape::Json));
    }
}

/// Whether anybody writes decisions down, or looks at them.
#[must_use]
pub fn are_logged() -> bool {
    LOG.get().is_some() || tail::is_watched()
}

impl Happened {
    /// Logs it; likewise.
    pub fn log(&self) {
        if let Some(log) = LOG.get() {
            let _dropped_and_counted = log.writer.clone().write_all(self.line(log.shape).as_bytes());
        }
        if tail::is_watched() {
            tail::keep(&self.line(Shape::Json));
        }
    }

    fn line(&self, shape: Shape) -> String {
        let Self { workshop, request, change, seats, reserved, holder, expires_at_ms } = self;
        let mut line = String::with_capacity(256);
        if shape == Shape::Json {
            line.push_str(r#"{"timestamp":""#);
        }
        // As above: nothing here needs an escape, and writing to a String cannot fail.
        let _infallible = SystemTime.format_time(&mut Writer::new(&mut line));
        let optional = [("holder", *holder), ("expiresAt", *expires_at_ms)];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        match shape {
            Shape::Json => {
                let _infallible = write!(
                    line,
                    r#"","level":"INFO","event":"reservation_changed","workshop":"{workshop}","requestId":"{request}","change":"{change}","seats":{seats},"reserved":{reserved}"#
                );
                for (name, value) in optional {
                    let _infallible = write!(line, r#","{name}":{value}"#);
                }
                line.push_str(r#","target":"headcount::decisions"}"#);
            }
            Shape::Human => {
                let _infallible = write!(
                    line,
                    r#"  INFO headcount::decisions: event="reservation_changed" workshop="{workshop}" requestId="{request}" change="{change}" seats={seats} reserved={reserved}"#
                );
                for (name, value) in optional {
                    let _infallible = write!(line, " {name}={value}");
                }
            }
        }
        line.push('\n');
        line
    }
}

fn line(decision: &Decision<'_>, shape: Shape) -> String {
    let Decision { workshop, request, seats, status, reserved, replayed } = *decision;
    let mut line = String::with_capacity(256);
    // Names of workshops and requests hold nothing that JSON escapes. Writing to a String cannot fail.
    let _infallible = match shape {
        Shape::Json => {
            line.push_str(r#"{"timestamp":""#);
            let _infallible = SystemTime.format_time(&mut Writer::new(&mut line));
            writeln!(
                line,
                r#"","level":"INFO","event":"reservation_decided","workshop":"{workshop}","requestId":"{request}","seats":{seats},"status":"{status}","reserved":{reserved},"replayed":{replayed},"target":"headcount::decisions"}}"#
            )
        }
        Shape::Human => {
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
    fn what_happened_is_json_and_names_nobody() {
        let mut happened = Happened {
            workshop: "launch-day".into(),
            request: "request-1".into(),
            change: "offered",
            seats: 2,
            reserved: 4,
            holder: Some(7),
            expires_at_ms: Some(99),
        };
        let json: serde_json::Value = serde_json::from_str(&happened.line(Shape::Json)).unwrap();
        assert_eq!((json["holder"].as_i64(), json["expiresAt"].as_i64()), (Some(7), Some(99)));
        assert_eq!((&json["change"], &json["event"]), (&"offered".into(), &"reservation_changed".into()));
        assert!(happened.line(Shape::Human).ends_with("reserved=4 holder=7 expiresAt=99\n"));
        (happened.holder, happened.expires_at_ms) = (None, None);
        let json: serde_json::Value = serde_json::from_str(&happened.line(Shape::Json)).unwrap();
        assert!(json.get("holder").is_none() && json["reserved"] == 4);
        assert!(happened.line(Shape::Human).ends_with("reserved=4\n"));
    }

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
        let line = line(&decision, Shape::Json);
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(line.ends_with("}\n"));
        assert_eq!(json["event"], "reservation_decided");
        assert_eq!((json["seats"].as_i64(), json["replayed"].as_bool()), (Some(2), Some(false)));
        assert!(json["timestamp"].as_str().is_some_and(|time| time.ends_with('Z') && time.contains('T')));
    }
}
