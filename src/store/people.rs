//! What a store does to forget a person.

use std::sync::Arc;

use super::Error;

/// What becomes of a forgotten person's likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// They are gone, and the counts are lower.
    Remove,
    /// The counts stay, without the person: in the base ledger.
    Anonymise,
}

impl Policy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Remove, Self::Anonymise];

    /// As stored and asked for.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Anonymise => "anonymise",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// A person that is being forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgetting {
    /// Random: no other forgetting has it.
    pub id: i64,
    /// Who.
    pub person: Arc<str>,
    /// How.
    pub policy: Policy,
}

/// How much was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Likes removed, or anonymised.
    pub likes: u64,
    /// Rows that held the name as a holder's: one a partition.
    pub holders: u64,
    /// Messages in the durable history of rooms that lost their sender's name.
    pub messages: u64,
}

impl std::ops::AddAssign for Forgotten {
    fn add_assign(&mut self, more: Self) {
        self.likes += more.likes;
        self.holders += more.holders;
        self.messages += more.messages;
    }
}

/// For the audit: something was forgotten.
#[derive(Debug, Clone, Copy)]
pub struct Noted<'a> {
    /// In the course of which forgetting.
    pub id: i64,
    /// A keyed hash of the person's name.
    pub person_hash: &'a str,
    /// How.
    pub policy: Policy,
    /// When, ms since 1970.
    pub at_ms: i64,
    /// What.
    pub what: Forgotten,
}

/// A message's place in the durable history: its room's surrogate and its number.
pub type MessagePlace = (i64, i64);

/// Names and notes, inside the caller's transaction.
pub trait PeopleStore {
    /// Notes that a person is being forgotten; the answer is that note, or an older one of the same person.
    ///
    /// # Errors
    /// The engine's.
    fn begin_forgetting(&mut self, forgetting: &Forgetting, now_ms: i64) -> Result<Forgetting, Error>;

    /// Those that were begun here and not ended.
    ///
    /// # Errors
    /// The engine's.
    fn unfinished_forgettings(&mut self) -> Result<Vec<Forgetting>, Error>;

    /// Removes a holder's name; whether it was there. What hangs on its surrogate stays.
    ///
    /// # Errors
    /// The engine's.
    fn forget_holder(&mut self, name: &str) -> Result<bool, Error>;

    /// Looks at up to `limit` messages after a place, and takes the sender's name and its id of the message from those
    /// of this sender. How many those were, and the last place looked at; `None` at the end.
    ///
    /// # Errors
    /// The engine's.
    fn forget_speaker(
        &mut self,
        name: &str,
        after: MessagePlace,
        limit: u32,
    ) -> Result<(u64, Option<MessagePlace>), Error>;

    /// Adds to what is known to be forgotten.
    ///
    /// # Errors
    /// The engine's.
    fn note_forgotten(&mut self, noted: &Noted<'_>) -> Result<(), Error>;

    /// What was forgotten here in the course of a forgetting.
    ///
    /// # Errors
    /// The engine's.
    fn forgotten(&mut self, id: i64) -> Result<Forgotten, Error>;

    /// Removes the note that a person is being forgotten, and every trace of its name on its way into a table.
    ///
    /// # Errors
    /// The engine's.
    fn end_forgetting(&mut self, id: i64) -> Result<(), Error>;
}
