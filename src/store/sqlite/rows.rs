//! Many rows by one statement: what a statement costs beside its rows is a third of an insert.

use rusqlite::{Connection, Statement, ToSql};

/// Rows of one statement.
const TOGETHER: usize = 16;

/// An insert, prepared for many rows and for one.
#[derive(Debug)]
pub(super) struct Insert {
    many: String,
    one: String,
    columns: usize,
}

/// Takes the values of a row, one after the other.
pub(super) struct Values<'a, 'c> {
    statement: &'a mut Statement<'c>,
    last: usize,
}

impl Insert {
    /// `INSERT INTO` what `into` says, a table with its columns in parentheses, and how to go on with a row that is there.
    pub(super) fn new(into: &str, columns: usize, on_conflict: &str) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        // FAIL: a statement that may have to be undone by itself keeps a journal of the pages that it changes. Here a statement
        // that fails takes the whole transaction with it.
        let sql = |rows| {
            format!("INSERT OR FAIL INTO {into} VALUES {} {on_conflict}", vec![row.as_str(); rows].join(", "))
        };
        Self { many: sql(TOGETHER), one: sql(1), columns }
    }

    /// Inserts rows in their order, each as `bind` gives its values.
    pub(super) fn execute<R>(
        &self,
        connection: &Connection,
        rows: &[R],
        bind: impl Fn(&R, &mut Values<'_, '_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let (many, rest) = rows.as_chunks::<TOGETHER>();
        if !many.is_empty() {
            let mut statement = connection.prepare_cached(&self.many)?;
            many.iter().try_for_each(|rows| self.insert(&mut statement, rows, &bind))?;
        }
        if !rest.is_empty() {
            let mut statement = connection.prepare_cached(&self.one)?;
            rest.iter().try_for_each(|row| self.insert(&mut statement, std::slice::from_ref(row), &bind))?;
        }
        Ok(())
    }

    fn insert<R>(
        &self,
        statement: &mut Statement<'_>,
        rows: &[R],
        bind: impl Fn(&R, &mut Values<'_, '_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut values = Values { statement, last: 0 };
        for row in rows {
            bind(row, &mut values)?;
        }
        debug_assert_eq!(values.last, rows.len() * self.columns, "a row has as many values as columns");
        statement.raw_execute().map(drop)
    }
}

impl Values<'_, '_> {
    /// The next column's.
    pub(super) fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.last += 1;
        self.statement.raw_bind_parameter(self.last, value)
    }
}
