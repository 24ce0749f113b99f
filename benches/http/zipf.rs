//! Zipf-distributed items: the item of rank k is chosen in proportion to 1/k, as likes fall on posts.

/// The cumulative distribution over `items` ranks, scaled to the whole range of `u64`.
pub struct Zipf {
    upto: Vec<u64>,
}

impl Zipf {
    pub fn new(items: usize) -> Self {
        let weight = |rank: usize| 1.0 / (rank + 1) as f64;
        let total: f64 = (0..items).map(weight).sum();
        let mut sum = 0.0;
        let upto = (0..items)
            .map(|rank| {
                sum += weight(rank);
                (sum / total * u64::MAX as f64) as u64
            })
            .collect();
        Self { upto }
    }

    /// The item that a uniformly random `random` falls on: 0 is the most liked.
    pub fn pick(&self, random: u64) -> usize {
        self.upto.partition_point(|&upto| upto < random).min(self.upto.len() - 1)
    }
}

/// SplitMix64's finalizer: one to one, so distinct numbers stay distinct, and without visible order.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
