//! What was measured.

use crate::report::median;
use crate::tally::Tally;

/// How a run loaded its side.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Closed {
        connections: usize,
    },
    /// At so many percent of the side's own peak.
    Paced {
        percent: u32,
    },
}

/// One run.
pub struct Sample {
    pub workload: &'static str,
    pub side: &'static str,
    pub mode: Mode,
    pub round: usize,
    pub point: Point,
}

/// What a run, or the median of some, came to.
#[derive(Clone, Copy)]
pub struct Point {
    /// Requests a second that became due; in closed loop the same as `rate`.
    pub offered: f64,
    /// Answers a second that were the work asked for.
    pub rate: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    /// CPU microseconds a request, warm-up included.
    pub server_us: f64,
    pub generator_us: f64,
    /// Answers that were not the work asked for.
    pub unmet: f64,
}

impl Point {
    pub fn of(tally: &Tally, offered: Option<f64>, server_cpu: f64, generator_cpu: f64) -> Self {
        let latency = |quantile| tally.latency.quantile_ms(quantile);
        let micros = |seconds: f64| seconds * 1e6 / tally.all.answers().max(1) as f64;
        Self {
            offered: offered.unwrap_or(tally.rate()),
            rate: tally.rate(),
            p50_ms: latency(0.5),
            p99_ms: latency(0.99),
            p999_ms: latency(0.999),
            server_us: micros(server_cpu),
            generator_us: micros(generator_cpu),
            unmet: (tally.all.answers() - tally.all.met) as f64,
        }
    }

    /// Of each figure the median, but of unmet answers the sum.
    fn median(points: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(points.iter().map(figure).collect());
        (!points.is_empty()).then(|| Self {
            offered: of(|point| point.offered),
            rate: of(|point| point.rate),
            p50_ms: of(|point| point.p50_ms),
            p99_ms: of(|point| point.p99_ms),
            p999_ms: of(|point| point.p999_ms),
            server_us: of(|point| point.server_us),
            generator_us: of(|point| point.generator_us),
            unmet: points.iter().map(|point| point.unmet).sum(),
        })
    }
}

/// A side that could not be measured, or did not add up.
pub struct Failed {
    pub workload: &'static str,
    pub side: &'static str,
    pub why: String,
}

/// All runs.
#[derive(Default)]
pub struct Results {
    pub samples: Vec<Sample>,
    pub failures: Vec<Failed>,
    /// Sides that are left out, and why; no mistake of theirs.
    pub notes: Vec<String>,
    /// Runs whose answers were compared with what the server says, without a difference.
    pub checks: u64,
}

impl Results {
    /// The median of a side's runs in `mode`.
    pub fn at(&self, workload: &str, side: &str, mode: Mode) -> Option<Point> {
        let of = self
            .samples
            .iter()
            .filter(|sample| sample.workload == workload && sample.side == side && sample.mode == mode);
        Point::median(&of.map(|sample| sample.point).collect::<Vec<_>>())
    }

    /// The most that a side reached in closed loop, at any number of connections; a median too.
    pub fn peak(&self, workload: &str, side: &str) -> Option<f64> {
        let modes = self.modes(workload, side).into_iter().filter(|mode| matches!(mode, Mode::Closed { .. }));
        modes.filter_map(|mode| self.at(workload, side, mode)).map(|point| point.rate).reduce(f64::max)
    }

    /// The ways in which a side was loaded, in their order.
    pub fn modes(&self, workload: &str, side: &str) -> Vec<Mode> {
        let mut modes = Vec::new();
        for sample in &self.samples {
            if sample.workload == workload && sample.side == side && !modes.contains(&sample.mode) {
                modes.push(sample.mode);
            }
        }
        modes
    }

    /// The sides of a workload, in their order.
    pub fn sides(&self, workload: &str) -> Vec<&'static str> {
        let mut sides = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.workload == workload) {
            if !sides.contains(&sample.side) {
                sides.push(sample.side);
            }
        }
        sides
    }
}
