//! How much is too much: a bucket of tokens that fills with time.

/// So many a second, and as many at once after a quiet second.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// A second's worth; tokens are kept in thousandths, so that a millisecond fills whole ones.
    milli_tokens: i64,
    filled_ms: i64,
}

impl Bucket {
    /// A full one.
    #[must_use]
    pub fn full(per_second: u32, now_ms: i64) -> Self {
        Self { milli_tokens: i64::from(per_second) * 1_000, filled_ms: now_ms }
    }

    /// Takes one token, if there is one.
    pub fn take(&mut self, per_second: u32, now_ms: i64) -> bool {
        let capacity = i64::from(per_second) * 1_000;
        let elapsed_ms = now_ms.saturating_sub(self.filled_ms).max(0);
        let filled = elapsed_ms.saturating_mul(i64::from(per_second));
        self.milli_tokens = self.milli_tokens.saturating_add(filled).min(capacity);
        self.filled_ms = self.filled_ms.max(now_ms);
        if self.milli_tokens < 1_000 {
            return false;
        }
        self.milli_tokens -= 1_000;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holds_its_number_and_a_tenth_of_a_second_fills_a_tenth() {
        let mut bucket = Bucket::full(10, 0);
        assert_eq!((0..20).filter(|_| bucket.take(10, 0)).count(), 10);
        assert_eq!((0..20).filter(|_| bucket.take(10, 100)).count(), 1);
        assert_eq!(
            (0..20).filter(|_| bucket.take(10, 10_000)).count(),
            10,
            "never more than a second's worth"
        );
        assert!(!bucket.take(10, 0), "time that falls fills nothing");
    }
}
