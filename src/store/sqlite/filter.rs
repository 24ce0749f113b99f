//! Which keys are surely in no table: most likes and most requests are new, and for those no table need be looked at.
//!
//! A Bloom filter: it never says of a stored key that it is nowhere, and of some others that they may be stored. A key has
//! a few bits of one word, so that a look costs one word of memory; at ten bits a key it is sure of 98 in 100 that are
//! nowhere, at five of 90. Keys that are removed leave their bits behind, which costs a look at the table. Nothing of it is
//! stored: after a start a [`walk`](super::walk) finds what the tables hold, and until then every key may be stored.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bits of a key.
const BITS: u32 = 4;
/// Places in a word are told by so many bits of a hash.
const PLACE: u32 = u64::BITS.ilog2();

/// Keys that may be stored. Empty: any may.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    words: Vec<u64>,
    is_whole: bool,
}

/// A key's hash, one for each table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed(u64);

impl Hashed {
    /// Of a key that is a number and a text, in the table of this number.
    pub(super) fn of(table: u8, number: i64, text: &str) -> Self {
        let seed = number.cast_unsigned().rotate_left(8) ^ u64::from(table);
        Self(xxh3_64_with_seed(text.as_bytes(), seed))
    }
}

impl Filter {
    /// Of `kib` KiB, with nothing in it.
    pub(super) fn new(kib: u32) -> Self {
        // Zeroes cost no memory before something is written over them.
        Self { words: vec![0; kib as usize * 1024 / size_of::<u64>()], is_whole: false }
    }

    /// Notes a key.
    pub(super) fn note(&mut self, key: Hashed) {
        let at = self.word(key);
        if let Some(word) = self.words.get_mut(at) {
            *word |= bits(key);
        }
    }

    /// Whether a key is surely nowhere.
    pub(super) fn is_nowhere(&self, key: Hashed) -> bool {
        let bits = bits(key);
        self.is_whole && self.words.get(self.word(key)).is_some_and(|word| word & bits != bits)
    }

    /// Takes in what a walk through the tables found; from now on it knows all keys.
    pub(super) fn complete(&mut self, walked: &Self) {
        self.words.iter_mut().zip(&walked.words).for_each(|(word, walked)| *word |= walked);
        self.is_whole = true;
    }

    fn word(&self, Hashed(hash): Hashed) -> usize {
        // The upper bits choose the word and the lower ones the places in it.
        let scaled = u128::from(hash) * self.words.len() as u128;
        usize::try_from(scaled >> u64::BITS).unwrap_or(0)
    }
}

fn bits(Hashed(hash): Hashed) -> u64 {
    (0..BITS).fold(0, |bits, nth| bits | 1 << ((hash >> (nth * PLACE)) % u64::from(u64::BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: i64) -> Hashed {
        Hashed::of(1, n % 10, &format!("user-{n}"))
    }

    #[test]
    fn a_stored_key_is_never_nowhere_and_most_others_are() {
        let mut filter = Filter::new(4);
        let mut walked = filter.clone();
        // Ten bits each.
        (0..3_000).step_by(2).for_each(|n| filter.note(key(n)));
        (1..3_000).step_by(2).for_each(|n| walked.note(key(n)));
        assert!(
            (0..9_000).all(|n| !filter.is_nowhere(key(n))),
            "until the tables are walked through, nothing is sure"
        );
        filter.complete(&walked);
        assert!((0..3_000).all(|n| !filter.is_nowhere(key(n))));
        let unsure = (3_000..103_000).filter(|n| !filter.is_nowhere(key(*n))).count();
        assert!(unsure < 3_000, "{unsure} of 100,000");
    }

    #[test]
    fn a_key_of_one_table_is_none_of_another() {
        let mut filter = Filter::new(1);
        filter.note(Hashed::of(1, 7, "ada"));
        filter.complete(&Filter::new(1));
        assert!(!filter.is_nowhere(Hashed::of(1, 7, "ada")));
        assert!(filter.is_nowhere(Hashed::of(2, 7, "ada")) && filter.is_nowhere(Hashed::of(1, 8, "ada")));
    }

    #[test]
    fn a_filter_of_no_memory_is_sure_of_nothing() {
        let mut filter = Filter::new(0);
        filter.note(key(1));
        filter.complete(&Filter::new(0));
        assert!(!filter.is_nowhere(key(2)));
    }
}
