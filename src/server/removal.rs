//! What is declared deleted in the settings goes before anybody is served.

use super::Error;
use crate::config::{Config, Namespace};
use crate::data_dir::Manifest;
use crate::likes::types::shards_of_partition;
use crate::reservations::removal::remove_workshops;
use crate::store;
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::summary::SqliteSummary;

/// Refuses a declaration that does not name this data directory.
///
/// # Errors
/// [`Error::Unconfirmed`].
pub(super) fn check_confirmed(config: &Config, manifest: &Manifest) -> Result<(), Error> {
    let namespaces = [("likes", &config.namespaces.likes), ("workshops", &config.namespaces.workshops)];
    for (name, Namespace { confirm, .. }) in
        namespaces.into_iter().filter(|(_, namespace)| namespace.is_deleted())
    {
        if confirm.as_ref() == Some(&manifest.data_id) {
            continue;
        }
        let found = match confirm {
            Some(confirm) => format!("it is \"{confirm}\""),
            None => "it is missing".to_owned(),
        };
        let data_dir = config.storage.data_dir.display().to_string();
        return Err(Error::Unconfirmed { namespace: name, data_dir, found });
    }
    Ok(())
}

/// Removes the totals of likes that are declared deleted. Before [`from_partition`]: interrupted in between, the roll-up
/// would carry again what is left.
///
/// # Errors
/// The store's.
pub(super) fn from_summary(config: &Config, summary: &mut SqliteSummary) -> Result<(), store::Error> {
    match config.namespaces.likes.is_deleted() {
        true => summary.remove_totals(config.namespaces.chunk_rows),
        false => Ok(()),
    }
}

/// Removes what is declared deleted from a partition's file. Interrupted, it goes on at the next start.
///
/// # Errors
/// The store's.
pub(super) fn from_partition(
    config: &Config,
    manifest: &Manifest,
    (partition, store): (u32, &mut SqliteStore),
    now_ms: i64,
) -> Result<(), store::Error> {
    let namespaces = &config.namespaces;
    if !namespaces.likes.is_deleted() && !namespaces.workshops.is_deleted() {
        return Ok(());
    }
    tracing::warn!(
        partition,
        likes = namespaces.likes.is_deleted(),
        workshops = namespaces.workshops.is_deleted(),
        "removing what is declared deleted"
    );
    store.overwrite_deleted(true)?;
    if namespaces.likes.is_deleted() {
        let shards = shards_of_partition(partition, manifest.shards, manifest.partitions);
        store.remove_likes(&shards, namespaces.chunk_rows)?;
    }
    if namespaces.workshops.is_deleted() {
        remove_workshops(store, namespaces.chunk_rows, now_ms)?;
    }
    store.overwrite_deleted(false)
}
