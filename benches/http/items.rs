//! Which item a request falls on.

/// A way to choose among a number of items.
pub enum Items {
    /// As likes fall on posts: the item of rank k in proportion to 1/k. The cumulative distribution over the ranks, scaled
    /// to the whole range of `u64`.
    Zipf(Vec<u64>),
    /// Each once before any comes again, scattered: no cache can know the next.
    InTurn(u64),
}

/// A prime, so that its multiples visit every residue of any number of items below it.
const STRIDE: u64 = 1_000_000_007;

impl Items {
    pub fn zipf(items: usize) -> Self {
        let weight = |rank: usize| 1.0 / (rank + 1) as f64;
        let total: f64 = (0..items).map(weight).sum();
        let mut sum = 0.0;
        let upto = (0..items)
            .map(|rank| {
                sum += weight(rank);
                (sum / total * u64::MAX as f64) as u64
            })
            .collect();
        Self::Zipf(upto)
    }

    /// The item of the draw number `draw`; of a Zipf distribution 0 is the most liked.
    pub fn pick(&self, draw: u64) -> usize {
        match self {
            // Mixed twice, or the item would follow from the first digits of the id, which is mixed once.
            Self::Zipf(upto) => {
                let random = mix(mix(draw));
                upto.partition_point(|&upto| upto < random).min(upto.len() - 1)
            }
            Self::InTurn(items) => ((draw % items) * STRIDE % items) as usize,
        }
    }
}

/// SplitMix64's finalizer: one to one, so distinct numbers stay distinct, and without visible order.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
