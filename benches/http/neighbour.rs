//! A workshop beside another one on the same partition: what it notices of it.

use headcount::data_dir::DEFAULT_PARTITIONS;
use headcount::reservations::WorkshopName;
use headcount::reservations::types::partition_of_workshop;

use crate::report::statuses;
use crate::tally::Tally;

/// The partition of the workshop `name`, in a service as it ships.
pub fn partition_of(name: &str) -> Option<u32> {
    let name = WorkshopName::parse(name)?;
    Some(partition_of_workshop(name.hash(), DEFAULT_PARTITIONS))
}

/// A workshop on the same partition as `name`.
pub fn neighbour_of(name: &str) -> String {
    let mut names = (0..).map(|n| format!("neighbour-{n}"));
    names.find(|other| partition_of(other) == partition_of(name)).unwrap_or_default()
}

/// A table of what the same load met at other times.
pub fn print(rows: &[(&str, &Tally)]) {
    println!(
        "| another workshop | requests/s | p50 ms | p99 ms | p99.9 ms | answers |\n|---|---:|---:|---:|---:|---|"
    );
    for (name, tally) in rows {
        let latency = |quantile| tally.latency.quantile_ms(quantile);
        println!(
            "| {name} | {:.0} | {:.2} | {:.2} | {:.2} | {} |",
            tally.rate(),
            latency(0.5),
            latency(0.99),
            latency(0.999),
            statuses(tally)
        );
    }
}
