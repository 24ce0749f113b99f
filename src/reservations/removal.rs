//! Removing every workshop of a partition, before its actors are there.

use crate::store::{BookingsStore, Error, SetsStore, Transactions};

/// Removes all workshops with everything in them, and all sets, `chunk` rows a transaction; not even tombstones stay. Each workshop is
/// there whole or is gone, whenever this is interrupted; the next call goes on.
///
/// # Errors
/// The store's.
pub fn remove_workshops<S: Transactions + BookingsStore + SetsStore>(
    store: &mut S,
    chunk: u32,
    now_ms: i64,
) -> Result<(), Error> {
    while in_transaction(store, |store| {
        let page = store.list_workshops("", chunk)?;
        for (name, key, _) in &page {
            store.delete_workshop(*key, name, now_ms)?;
        }
        Ok(!page.is_empty())
    })? {}
    while in_transaction(store, |store| store.sweep_workshops(chunk))? {}
    while in_transaction(store, |store| store.remove_tombstones(chunk))? {}
    while in_transaction(store, |store| store.remove_sets(chunk))? {}
    store.syncer()?.sync()?;
    store.checkpoint()
}

fn in_transaction<S: Transactions, T>(
    store: &mut S,
    change: impl FnOnce(&mut S) -> Result<T, Error>,
) -> Result<T, Error> {
    store.begin()?;
    let done = change(store)?;
    // Time stays where it is, and what is removed is synced in the end: lost, it is removed again.
    let _synced_in_the_end = store.commit(0)?;
    Ok(done)
}
