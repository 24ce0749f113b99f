//! What the project wants of itself, beside what was measured.

use super::results::{Mode, Results};
use super::settings::Settings;
use super::tables::{closed, compared_at};
use super::workloads::{BARE, HEADCOUNT, NOOP, POSTGRES, REDIS, WORKERD};

const LIKES: &str = "likes-hot";
const SEATS: &str = "reservations-hot";

/// A side of a workload.
type Side = (&'static str, &'static str);

/// Throughput of one side as a multiple of another's: at least so much.
const RATIOS: [(&str, Side, Side, f64); 13] = [
    ("likes of one hot item, of the no-op", (LIKES, HEADCOUNT), (LIKES, NOOP), 0.8),
    ("likes of one hot item, of Redis", (LIKES, HEADCOUNT), (LIKES, REDIS), 1.3),
    ("likes of one hot item, of PostgreSQL with one row", (LIKES, HEADCOUNT), (LIKES, POSTGRES), 20.0),
    ("likes of one hot item, of workerd", (LIKES, HEADCOUNT), (LIKES, WORKERD), 20.0),
    ("reservations of one hot workshop, of the no-op", (SEATS, HEADCOUNT), (SEATS, NOOP), 0.75),
    ("reservations of one hot workshop, of Redis", (SEATS, HEADCOUNT), (SEATS, REDIS), 1.2),
    ("reservations of one hot workshop, of PostgreSQL", (SEATS, HEADCOUNT), (SEATS, POSTGRES), 20.0),
    ("reservations of one hot workshop, of workerd", (SEATS, HEADCOUNT), (SEATS, WORKERD), 20.0),
    ("one hot item, of 10,000 by Zipf", (LIKES, HEADCOUNT), ("likes-zipf", HEADCOUNT), 0.9),
    ("one hot workshop, of 10,000", (SEATS, HEADCOUNT), ("reservations-many", HEADCOUNT), 0.9),
    ("cached reads, of a no-op GET", ("reads", HEADCOUNT), ("reads", NOOP), 0.9),
    ("90 % reads and 10 % likes, of the no-op", ("mixed", HEADCOUNT), ("mixed", NOOP), 0.85),
    ("the no-op itself, of a bare axum program", (LIKES, NOOP), (LIKES, BARE), 0.85),
];

/// A list of all of them, met and missed.
pub fn list(settings: &Settings, results: &Results) -> String {
    let at = compared_at(settings);
    let mut list =
        format!("## Bars\n\nAt {at} connections.\n\n| what | wanted | measured | |\n|---|---:|---:|---|\n");
    for (what, (workload, side), (other_workload, other_side), least) in RATIOS {
        let mine = closed(results, workload, side, at);
        let other = closed(results, other_workload, other_side, at);
        let ratio = mine.zip(other).map(|(mine, other)| mine.rate / other.rate);
        let ratio = ratio.filter(|ratio| ratio.is_finite());
        list += &line(what, &format!("at least {least}"), ratio, ratio.is_some_and(|ratio| ratio >= least));
    }
    let half = results.at(LIKES, HEADCOUNT, Mode::Paced { percent: 50 });
    for (what, latency, most) in [
        ("durable likes at half of the peak, p99 in ms", half.map(|half| half.p99_ms), 5.0),
        ("durable likes at half of the peak, p99.9 in ms", half.map(|half| half.p999_ms), 20.0),
    ] {
        list +=
            &line(what, &format!("at most {most}"), latency, latency.is_some_and(|latency| latency <= most));
    }
    list
}

fn line(what: &str, wanted: &str, measured: Option<f64>, is_met: bool) -> String {
    let (measured, verdict) = match measured {
        None => ("-".to_owned(), "not measured"),
        Some(measured) => (format!("{measured:.2}"), if is_met { "met" } else { "**missed**" }),
    };
    format!("| {what} | {wanted} | {measured} | {verdict} |\n")
}
