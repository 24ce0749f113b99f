//! The order in which rows move into their table: nearly that of their keys, so that rows which share a page are written
//! together. Nobody waits for a whole sort: rows are noted as they come, and sorted as far as they are taken.

/// Segments up to this many rows are sorted in one go, which takes some tens of microseconds.
const SMALL: usize = 1024;

/// Where a row belongs: by a number, and then by eight bytes of a text. One out of its place costs a page more, no mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    number: i64,
    text: u64,
    row: u32,
}

/// Rows by number, on their way into a table.
#[derive(Debug, Default)]
pub(super) struct PageOrder {
    places: Vec<Place>,
    /// So many are in order, up to the first of `ends`.
    sorted: usize,
    taken: usize,
    /// Ends of segments, the nearest last: whatever is in one belongs before all that follows.
    ends: Vec<usize>,
    /// Bytes at the beginning of texts that tell nothing, as far as earlier ones showed.
    skipped: usize,
    /// The first text, and how many bytes all have shared with it.
    first: Box<str>,
    shared: usize,
}

impl PageOrder {
    /// Notes the next row.
    pub(super) fn push(&mut self, number: i64, text: &str) {
        if self.places.is_empty() {
            (self.first, self.shared) = (text.into(), text.len());
        }
        let (first, now) = (self.first.as_bytes(), text.as_bytes());
        // As a rule nothing new is learned, and that is one comparison.
        if now.get(..self.shared) != first.get(..self.shared) {
            self.shared = first.iter().zip(now).take_while(|(a, b)| a == b).count();
        }
        let text = eight_bytes(now.get(self.skipped..).unwrap_or_default());
        let row = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(Place { number, text, row });
    }

    /// Takes back all but the first `rows`, of which none has been taken.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.places.truncate(rows);
    }

    /// The next rows, up to `max`.
    pub(super) fn take(&mut self, max: usize) -> impl Iterator<Item = usize> {
        let from = self.taken;
        self.taken = self.places.len().min(from.saturating_add(max));
        while self.sorted < self.taken {
            self.sort_some();
        }
        self.places.get(from..self.taken).unwrap_or_default().iter().map(|place| place.row as usize)
    }

    /// Rows that are still to be taken, in no order.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        self.places.iter().skip(self.taken).map(|place| place.row as usize)
    }

    /// Whether all are taken.
    pub(super) fn is_at_its_end(&self) -> bool {
        self.taken == self.places.len()
    }

    /// Empty again, with the memory of both; what the texts of `last` shared is skipped from now on.
    pub(super) fn begin_after(&mut self, last: &Self) {
        self.places.clear();
        self.ends.clear();
        (self.sorted, self.taken, self.skipped) = (0, 0, last.shared);
    }

    /// Sorts the nearest segment if it is small, else halves it.
    fn sort_some(&mut self) {
        let (from, to) = (self.sorted, self.ends.last().copied().unwrap_or(self.places.len()));
        let segment = self.places.get_mut(from..to).unwrap_or_default();
        if segment.len() <= SMALL {
            segment.sort_unstable();
            self.sorted = to;
            self.ends.pop();
        } else {
            let half = segment.len() / 2;
            segment.select_nth_unstable(half);
            self.ends.push(from + half);
        }
    }
}

/// The first ones, filled up with nulls: they compare as the bytes do.
fn eight_bytes(bytes: &[u8]) -> u64 {
    let first = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut filled = [0; 8];
        filled.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        filled
    });
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(texts: &[String]) -> PageOrder {
        let mut order = PageOrder::default();
        texts.iter().for_each(|text| order.push(0, text));
        order
    }

    /// As many texts as told, each once, in no order.
    fn texts(count: u64) -> Vec<String> {
        (0..count).map(|n| format!("user-{:05}", n * 7_919 % count)).collect()
    }

    #[test]
    fn rows_are_taken_in_the_order_of_their_keys_each_once() {
        let texts = texts(10_007);
        let mut first = order_of(&texts);
        let mut order = PageOrder::default();
        order.begin_after(&first);
        texts.iter().for_each(|text| order.push(0, text));
        let mut taken = Vec::new();
        for max in [1, 999, 5_000, 1, 3_000, 10_000] {
            taken.extend(order.take(max).map(|row| texts[row].clone()));
            assert_eq!(order.left().count(), texts.len() - taken.len());
        }
        assert!(order.is_at_its_end());
        assert!(taken.is_sorted() && taken.len() == texts.len());

        // Before anything is known of the texts, their first eight bytes tell.
        let taken: Vec<_> = first.take(usize::MAX).map(|row| texts[row][..8].to_owned()).collect();
        assert!(taken.is_sorted() && taken.len() == texts.len());
    }

    #[test]
    fn numbers_come_before_texts() {
        let mut order = PageOrder::default();
        [(2, "a"), (1, "b"), (1, "a")].iter().for_each(|(number, text)| order.push(*number, text));
        assert_eq!(order.take(9).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn what_is_taken_back_is_not_taken() {
        let mut order = order_of(&texts(10));
        order.truncate(3);
        assert_eq!(order.take(9).count(), 3);
    }
}
