use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[backup]`: copies of the data, taken while the service runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backup {
    /// The one directory that backups are written into, created when missing; a relative path starts at the working
    /// directory. Whoever asks for a backup chooses a name in it and no other place. 1 to 4,096 characters.
    pub dir: PathBuf,
    /// Milliseconds that the partitions wait for each other and stand still at most while a backup begins. 1 to 60,000.
    pub max_hold_ms: u64,
}

impl Default for Backup {
    fn default() -> Self {
        Self { dir: PathBuf::from("backups"), max_hold_ms: 1_000 }
    }
}

impl Backup {
    pub(crate) const KEYS: Keys =
        &[("dir", Rule::Text { min: 1, max: 4_096 }), ("max_hold_ms", whole(1, 60_000))];
}
