//! A fixed log-linear histogram: every latency lands in a bucket at most 1.6 % wide, and recording never allocates.

use std::time::Duration;

/// Each power of two is split into this many buckets (as a power of two).
const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;
/// Latencies of 2^36 ns (69 s) and more share the last bucket.
const TOP_BITS: u32 = 36;
const BUCKETS: usize = (TOP_BITS - SUB_BITS + 1) as usize * SUB;

/// Counts of latencies, in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0 }
    }

    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)] += 1;
        self.count += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
    }

    /// The latency in milliseconds that the fraction `quantile` (0 to 1) of the requests did not exceed: the top of
    /// the bucket it fell into. 0 when nothing was recorded.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let wanted = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return top_of(index) as f64 / 1e6;
            }
        }
        0.0
    }
}

/// Below `SUB` a bucket a nanosecond; above, the octave picks a row and the bits after the leading one the column.
fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.min((1 << TOP_BITS) - 1);
    if nanos < SUB as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB_BITS;
    (shift as usize + 1) * SUB + (nanos >> shift) as usize - SUB
}

/// The largest value that `bucket_of` sends to this bucket.
fn top_of(index: usize) -> u64 {
    let (row, column) = (index / SUB, (index % SUB) as u64);
    if row == 0 {
        return column;
    }
    ((SUB as u64 + column + 1) << (row - 1)) - 1
}
