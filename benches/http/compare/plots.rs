//! Which plots are drawn.

use std::fs;
use std::path::Path;

use super::chart::{Axis, Chart, Line};
use super::family::PERCENTS;
use super::results::{Mode, Results};
use super::settings::Settings;
use super::tables::thousands;
use super::workloads::{self, BARE, ECHO, HEADCOUNT, NOOP, POSTGRES, POSTGRES_SLOTS, REDIS};
use crate::Failure;

/// Writes a plot of throughput for each workload, and one of latency for each that was measured at a pace.
pub fn write(out: &Path, settings: &Settings, results: &Results) -> Result<(), Failure> {
    for workload in workloads::all() {
        // The generator's own ceiling is in the table; here it would only press the others together.
        let sides: Vec<_> = results.sides(workload.name).into_iter().filter(|side| *side != ECHO).collect();
        let counts: Vec<f64> = settings.connections.iter().map(|&count| count as f64).collect();
        let throughput = sides.iter().map(|side| {
            let at = |&connections| {
                let point = results.at(workload.name, side, Mode::Closed { connections })?;
                Some((connections as f64, point.rate))
            };
            line(side, side, false, settings.connections.iter().filter_map(at).collect())
        });
        let chart = Chart {
            title: format!("{}: throughput", capital(workload.title)),
            x: Axis { label: "connections, each with one request in flight", ticks: Some(counts) },
            y: Axis { label: "requests/s", ticks: None },
            lines: throughput.collect(),
        };
        if let Some(svg) = chart.svg() {
            fs::write(out.join(format!("throughput-{}.svg", workload.name)), svg)?;
        }

        let latency = sides.iter().flat_map(|side| {
            let at = |figure: fn(&super::results::Point) -> f64| {
                let points = PERCENTS.iter().filter_map(|&percent| {
                    let point = results.at(workload.name, side, Mode::Paced { percent })?;
                    Some((point.offered, figure(&point)))
                });
                points.collect::<Vec<_>>()
            };
            [
                line(side, &format!("{side}, p99"), false, at(|point| point.p99_ms)),
                line(side, &format!("{side}, p50"), true, at(|point| point.p50_ms)),
            ]
        });
        let chart = Chart {
            title: format!("{}: latency at 25, 50 and 75 % of each side's peak", capital(workload.title)),
            x: Axis { label: "requests/s that become due, over 256 connections", ticks: None },
            y: Axis { label: "ms from when a request is due to its answer", ticks: None },
            lines: latency.collect(),
        };
        if let Some(svg) = chart.svg() {
            fs::write(out.join(format!("latency-{}.svg", workload.name)), svg)?;
        }
    }
    Ok(())
}

fn line(side: &str, name: &str, is_dashed: bool, points: Vec<(f64, f64)>) -> Line {
    let color = match side {
        HEADCOUNT => 0,
        NOOP => 1,
        BARE => 2,
        REDIS => 3,
        POSTGRES => 4,
        POSTGRES_SLOTS => 5,
        _ => 6,
    };
    Line { name: name.to_owned(), color, is_dashed, points }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A tick's label: whole numbers with their thousands set apart, small ones as they are.
pub fn label(number: f64) -> String {
    if number >= 1.0 { thousands(number) } else { format!("{number}") }
}
