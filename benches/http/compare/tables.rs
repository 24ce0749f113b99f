//! The tables, in Markdown.

use super::family::PERCENTS;
use super::results::{Mode, Point, Results};
use super::settings::Settings;
use super::workloads::{self, HEADCOUNT, NOOP};

/// The number of connections at which sides are compared: 256, or the most that were measured if that was not.
pub const COMPARED_AT: usize = 256;

/// Closed loop, by workload and side.
pub fn throughput(settings: &Settings, results: &Results) -> String {
    let at = compared_at(settings);
    let counts: Vec<String> = settings.connections.iter().map(|count| format!("{count}")).collect();
    let mut table = format!(
        "## Throughput, closed loop\n\nRequests/s by connections; the rest is at {at} connections.\n\n\
        | workload | side | {} | p50, p99 ms | of the no-op | headcount, times it | server CPU µs | generator CPU µs |\n\
        |---|---|{}---:|---:|---:|---:|---:|\n",
        counts.join(" | "),
        "---:|".repeat(counts.len()),
    );
    for workload in workloads::all() {
        for side in results.sides(workload.name) {
            let rates = settings.connections.iter().map(|&connections| {
                let point = results.at(workload.name, side, Mode::Closed { connections });
                point.map_or("-".to_owned(), |point| thousands(point.rate))
            });
            let rates: Vec<String> = rates.collect();
            let Some(point) = closed(results, workload.name, side, at) else { continue };
            let beside = |other: Option<Point>, ratio: fn(f64, f64) -> f64| {
                let ratio =
                    other.map(|other| ratio(point.rate, other.rate)).filter(|ratio| ratio.is_finite());
                ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let ceiling = closed(results, workloads::ceiling(workload.name), NOOP, at);
            let ours = closed(results, workload.name, HEADCOUNT, at);
            table += &format!(
                "| {} | {side} | {} | {:.2}, {:.2} | {} | {} | {:.1} | {:.1} |\n",
                workload.title,
                rates.join(" | "),
                point.p50_ms,
                point.p99_ms,
                beside(ceiling, |mine, ceiling| mine / ceiling),
                beside(ours, |mine, ours| ours / mine),
                point.server_us,
                point.generator_us,
            );
        }
    }
    table
        + "\nMedians of the rounds. Only answers that did the work count. A server's CPU is that of all its processes, a store's too.\n"
}

/// Open loop, by workload, side and load.
pub fn latency(results: &Results) -> String {
    let mut table =
        "## Latency, open loop\n\nAt parts of the side's own peak in the table above, over 256 connections, \
        from the moment a request was due.\n\n\
        | workload | side | load | due/s | answered/s | p50 ms | p99 ms | p99.9 ms |\n\
        |---|---|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    for workload in workloads::all() {
        for side in results.sides(workload.name) {
            for percent in PERCENTS {
                let Some(point) = results.at(workload.name, side, Mode::Paced { percent }) else { continue };
                table += &format!(
                    "| {} | {side} | {percent} % | {} | {} | {:.2} | {:.2} | {:.2} |\n",
                    workload.title,
                    thousands(point.offered),
                    thousands(point.rate),
                    point.p50_ms,
                    point.p99_ms,
                    point.p999_ms,
                );
            }
        }
    }
    table
}

/// What was checked, what is missing and what went wrong.
pub fn closing(results: &Results) -> String {
    let unmet: f64 = results.samples.iter().map(|sample| sample.point.unmet).sum();
    let mut text = format!(
        "\nChecked: after {} runs and last sweeps the server's totals and seats were compared with the answers; {}. \
        Answers that were not the work asked for: {unmet:.0}, \
        the four seats of each full workshop among them.\n",
        results.checks,
        if results.failures.is_empty() { "all were equal" } else { "what was not equal is below" },
    );
    for note in &results.notes {
        text += &format!("\n- {note}\n");
    }
    for failed in &results.failures {
        text += &format!("\n- FAILED: {}, {}: {}\n", failed.workload, failed.side, failed.why);
    }
    text
}

/// A side's closed loop at `connections`.
pub fn closed(results: &Results, workload: &str, side: &str, connections: usize) -> Option<Point> {
    results.at(workload, side, Mode::Closed { connections })
}

pub fn compared_at(settings: &Settings) -> usize {
    let most = settings.connections.iter().copied().max().unwrap_or(COMPARED_AT);
    if settings.connections.contains(&COMPARED_AT) { COMPARED_AT } else { most }
}

/// A whole number with its thousands set apart.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
