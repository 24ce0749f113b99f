//! The results, as a Markdown table.

use std::path::Path;

use crate::sides::Side;
use crate::tally::Tally;
use crate::{Failure, machine};

/// What the figures depend on: the machine, and the disk under `dir`.
pub fn machine(dir: &Path) -> Result<String, Failure> {
    let sync_ms = machine::sync_time(dir)?.as_secs_f64() * 1e3;
    Ok(format!("{}; 4 KiB append and fdatasync {sync_ms:.3} ms", machine::describe()))
}

/// What one side has shown so far.
pub struct Record {
    pub side: &'static Side,
    /// All its rounds together.
    pub total: Tally,
    /// Answers a second of each round.
    pub rates: Vec<f64>,
    /// CPU seconds of all rounds, warm-ups too.
    pub server_cpu: f64,
    pub generator_cpu: f64,
}

impl Record {
    pub fn new(side: &'static Side) -> Self {
        let total = Tally::new(side.items());
        Self { side, total, rates: Vec::new(), server_cpu: 0.0, generator_cpu: 0.0 }
    }

    fn median(&self) -> f64 {
        median(self.rates.clone())
    }

    fn row(&self, ceiling: Option<&Self>) -> String {
        let (least, most) =
            self.rates.iter().fold((f64::MAX, 0.0_f64), |(a, b), &rate| (a.min(rate), b.max(rate)));
        let latency = |quantile| self.total.latency.quantile_ms(quantile);
        let ratio = ceiling.map_or("-".to_owned(), |ceiling| {
            format!("{:.2} of {}", self.median() / ceiling.median(), ceiling.side.name)
        });
        let micros = |seconds: f64| seconds * 1e6 / self.total.all.answers().max(1) as f64;
        format!(
            "| {} | {:.0} | {least:.0}-{most:.0} | {:.2} | {:.2} | {:.2} | {ratio} | {:.1} | {:.1} | {} |",
            self.side.name,
            self.median(),
            latency(0.5),
            latency(0.99),
            latency(0.999),
            micros(self.server_cpu),
            micros(self.generator_cpu),
            statuses(&self.total),
        )
    }
}

/// The median: of an even number, the mean of the middle two.
pub fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    let (low, high) = (rates.len().saturating_sub(1) / 2, rates.len() / 2);
    rates.get(low).zip(rates.get(high)).map_or(0.0, |(low, high)| f64::midpoint(*low, *high))
}

/// The table, and before it what the generator itself can do.
pub fn print(records: &[Record]) {
    let find = |name: &str| records.iter().find(|record| record.side.name == name);
    if let Some(echo) = find("echo") {
        println!("generator ceiling: {:.0} requests/s against a canned responder\n", echo.median());
    }
    println!(
        "| side | requests/s | min-max | p50 ms | p99 ms | p99.9 ms | ratio | server CPU µs | generator CPU µs | answers |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---:|---:|---|");
    for record in records {
        println!("{}", record.row(record.side.ceiling.and_then(find)));
    }
    println!(
        "\nRequests/s is the median of the rounds, of the answers that did the work; latency is over all rounds and"
    );
    println!("answers; CPU is per request; answers are by status and include the warm-ups.");
}

/// The answers by status, and how many of them were not the work asked for.
pub fn statuses(tally: &Tally) -> String {
    let mut counts: Vec<_> =
        tally.all.statuses().map(|(status, count)| format!("{status}: {count}")).collect();
    let unmet = tally.all.answers() - tally.all.met;
    if unmet > 0 {
        counts.push(format!("not counted: {unmet}"));
    }
    counts.join(", ")
}
