//! Rows of several readers as one stream, in the order of their first column if each of them has that order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::{Row, Rows, Statement};

use crate::store::Error;

pub(super) struct Merged<'s> {
    readers: Vec<Rows<'s>>,
    /// What each reader has next.
    heads: BinaryHeap<Reverse<(Box<str>, usize)>>,
    /// Whose row was handed out last.
    last: Option<usize>,
}

impl<'s> Merged<'s> {
    /// The first column of each is a text.
    pub(super) fn new(statements: &'s mut [Statement<'_>]) -> Result<Self, Error> {
        let readers: Vec<Rows<'s>> =
            statements.iter_mut().map(|statement| statement.query([])).collect::<Result<_, _>>()?;
        let mut merged = Self { heads: BinaryHeap::with_capacity(readers.len()), readers, last: None };
        for reader in 0..merged.readers.len() {
            merged.advance(reader)?;
        }
        Ok(merged)
    }

    /// The next row; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<&Row<'s>>, Error> {
        if let Some(last) = self.last.take() {
            self.advance(last)?;
        }
        let Some(Reverse((_, next))) = self.heads.pop() else { return Ok(None) };
        self.last = Some(next);
        Ok(self.readers.get(next).and_then(|rows| FallibleStreamingIterator::get(rows)))
    }

    fn advance(&mut self, reader: usize) -> Result<(), Error> {
        let Some(rows) = self.readers.get_mut(reader) else { return Ok(()) };
        FallibleStreamingIterator::advance(rows)?;
        if let Some(row) = FallibleStreamingIterator::get(rows) {
            let key = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            self.heads.push(Reverse((key.into(), reader)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn rows_of_all_readers_come_in_one_order() {
        let file = Connection::open_in_memory().unwrap();
        let select = |values: &str| file.prepare(&format!("SELECT * FROM (VALUES {values})")).unwrap();
        let mut statements = vec![
            select("('a', 1), ('c', 2), ('c', 3)"),
            select("('b', 4), ('c', 5), ('é', 6)"),
            file.prepare("SELECT 'x', 0 WHERE false").unwrap(),
        ];
        let mut merged = Merged::new(&mut statements).unwrap();
        let mut seen = String::new();
        while let Some(row) = merged.next().unwrap() {
            seen += &format!("{}{} ", row.get::<_, String>(0).unwrap(), row.get::<_, i64>(1).unwrap());
        }
        assert_eq!(seen, "a1 b4 c2 c3 c5 é6 ");
    }
}
