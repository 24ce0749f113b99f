//! What a store does for imports, beside what it does for likes.

use super::Error;
use super::likes::Membership;

/// Rows that come with a past. Inside the caller's transaction.
pub trait ImportStore {
    /// Adds the rows that are absent, each with its own time in whole seconds since 1970; whether each existed before.
    ///
    /// # Errors
    /// The engine's.
    fn add_memberships(&mut self, rows: &[(Membership<'_>, i64)]) -> Result<Vec<bool>, Error>;

    /// What a source has brought to an item's base in some shards; `None` if nothing came from there.
    ///
    /// # Errors
    /// The engine's.
    fn base_from(&mut self, item: &str, source: &str, shards: &[u32]) -> Result<Option<i64>, Error>;
}
