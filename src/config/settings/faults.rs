//! Compiled into debug builds alone: a release build refuses `[faults]` as an unknown key, so that nobody can switch a
//! fault on in production. For the same reason it has no place in `config/headcount.toml`.
#![cfg(debug_assertions)]

use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[faults]`: faults made on purpose, for tests that prove the service notices them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Lets replies leave before their commit: breaks the output gate.
    pub reply_before_commit: bool,
    /// Fails each commit whose number is a multiple of this; 0 fails none. 0 to 1,000,000,000.
    pub fail_commit_every: u64,
    /// A user id or request id whose command panics its partition; empty: none. 0 to 1,024 characters.
    pub panic_on: String,
    /// Milliseconds that each commit is held up. 0 to 600,000.
    pub commit_delay_ms: u64,
    /// Lets `POST /faults/clock?ms=` on the admin listener make it later.
    pub clock_control: bool,
    /// Where sets stop on their way, as if their process had died there: pending, prepared_one, prepared, decided,
    /// settled_one or settled; empty: nowhere. 0 to 32 characters.
    pub stop_set_at: String,
    /// Fails the first question after a room's record.
    pub fail_first_room: bool,
    /// Where a move or a backup stops on its way for good: see `admin::steps`; empty: nowhere. 0 to 64 characters.
    pub stop_work_at: String,
    /// Bytes that are said to be free on every disk before a move or a backup; 0: the truth. 0 to 1,000,000,000,000.
    pub free_bytes: u64,
}

impl Faults {
    pub(crate) const KEYS: Keys = &[
        ("reply_before_commit", Rule::Switch),
        ("fail_commit_every", whole(0, 1_000_000_000)),
        ("panic_on", Rule::Text { min: 0, max: 1_024 }),
        ("commit_delay_ms", whole(0, 600_000)),
        ("clock_control", Rule::Switch),
        ("stop_set_at", Rule::Text { min: 0, max: 32 }),
        ("fail_first_room", Rule::Switch),
        ("stop_work_at", Rule::Text { min: 0, max: 64 }),
        ("free_bytes", whole(0, 1_000_000_000_000)),
    ];
}
