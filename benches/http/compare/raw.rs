//! Every run, for whoever wants to reckon otherwise.

use super::family::PACED_CONNECTIONS;
use super::results::{Mode, Results};

/// A line a run, with a head.
pub fn csv(results: &Results) -> String {
    let mut csv = "workload,side,loop,connections,percent_of_peak,round,due_per_s,answered_per_s,p50_ms,p99_ms,p999_ms,\
        server_cpu_us,generator_cpu_us,unmet\n"
        .to_owned();
    for sample in &results.samples {
        let (kind, connections, percent) = match sample.mode {
            Mode::Closed { connections } => ("closed", connections, String::new()),
            Mode::Paced { percent } => ("open", PACED_CONNECTIONS, percent.to_string()),
        };
        let point = &sample.point;
        csv += &format!(
            "{},{},{kind},{connections},{percent},{},{:.1},{:.1},{:.4},{:.4},{:.4},{:.2},{:.2},{:.0}\n",
            sample.workload,
            sample.side,
            sample.round,
            point.offered,
            point.rate,
            point.p50_ms,
            point.p99_ms,
            point.p999_ms,
            point.server_us,
            point.generator_us,
            point.unmet,
        );
    }
    csv
}
