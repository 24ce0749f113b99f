//! What a partition is asked, to forget a person.

use std::sync::Arc;

use crate::likes::forget::ForgottenLikes;
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::store::people::{Forgetting, Forgotten, MessagePlace};

/// One step, with the way back. Each is one transaction with the note of what it did, and can be repeated.
#[derive(Debug)]
pub enum Command {
    /// Note that it begins; the answer is that note, or an older one of the same person.
    Begin {
        /// What begins.
        forgetting: Forgetting,
        /// What is under way now.
        reply: Reply<Forgetting>,
    },
    /// What was begun here and not ended.
    Unfinished {
        /// The oldest first.
        reply: Reply<Vec<Forgetting>>,
    },
    /// Forget some of the person's likes.
    Likes {
        /// Whose.
        of: Whose,
        /// `likes.shards`.
        shards: u32,
        /// At most so many.
        limit: u32,
        /// How many, and whether there may be more.
        reply: Reply<ForgottenLikes>,
    },
    /// Forget whom reservations are for.
    Holder {
        /// Whose.
        of: Whose,
        /// Whether the name was there.
        reply: Reply<bool>,
    },
    /// Forget who said some messages.
    Messages {
        /// Whose.
        of: Whose,
        /// After this one.
        after: MessagePlace,
        /// Look at so many at most.
        limit: u32,
        /// The last one looked at; `None` at the end.
        reply: Reply<Option<MessagePlace>>,
    },
    /// What this partition has forgotten in the course of it, killed in between or not.
    Forgotten {
        /// Which forgetting.
        id: i64,
        /// All of it.
        reply: Reply<Forgotten>,
    },
    /// Note that it has ended: no name is left here.
    End {
        /// Whose.
        of: Whose,
        /// Done.
        reply: Reply<()>,
    },
}

/// Who is forgotten, and how the audit calls them.
#[derive(Debug, Clone)]
pub struct Whose {
    /// Who, and how.
    pub forgetting: Forgetting,
    /// See [`person_hash`](super::hash::person_hash).
    pub hash: Arc<str>,
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::Begin { reply, .. } => reply.release(),
            Self::Unfinished { reply } => reply.release(),
            Self::Likes { reply, .. } => reply.release(),
            Self::Holder { reply, .. } => reply.release(),
            Self::Messages { reply, .. } => reply.release(),
            Self::Forgotten { reply, .. } => reply.release(),
            Self::End { reply, .. } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Begin { reply, .. } => reply.refuse(refusal),
            Self::Unfinished { reply } => reply.refuse(refusal),
            Self::Likes { reply, .. } => reply.refuse(refusal),
            Self::Holder { reply, .. } => reply.refuse(refusal),
            Self::Messages { reply, .. } => reply.refuse(refusal),
            Self::Forgotten { reply, .. } => reply.refuse(refusal),
            Self::End { reply, .. } => reply.refuse(refusal),
        }
    }
}
