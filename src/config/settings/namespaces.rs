use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[namespaces]`: which parts of the data are kept at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Namespaces {
    /// Rows that one transaction removes of what is declared deleted. 1 to 1,000,000.
    pub chunk_rows: u32,
    /// Items, memberships, counters, totals.
    pub likes: Namespace,
    /// Workshops, reservations and what became of them, logs, holders' names.
    pub workshops: Namespace,
}

/// One part of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Namespace {
    /// Whether it is kept.
    pub state: NamespaceState,
    /// The id of the data directory whose data is to be removed. A slip, or settings that were copied, delete nothing. 1 to
    /// 64 characters.
    pub confirm: Option<String>,
}

/// Whether a part of the data is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceState {
    /// It is served.
    #[default]
    Live,
    /// Its data is removed at the start, and its routes answer 410.
    Deleted,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self { chunk_rows: 4_096, likes: Namespace::default(), workshops: Namespace::default() }
    }
}

impl Namespaces {
    pub(crate) const KEYS: Keys = &[
        ("chunk_rows", whole(1, 1_000_000)),
        ("likes", Rule::Section(Namespace::KEYS)),
        ("workshops", Rule::Section(Namespace::KEYS)),
    ];
}

impl Namespace {
    const KEYS: Keys =
        &[("state", Rule::Word(&["live", "deleted"])), ("confirm", Rule::Text { min: 1, max: 64 })];

    /// Whether it is declared deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.state == NamespaceState::Deleted
    }
}
