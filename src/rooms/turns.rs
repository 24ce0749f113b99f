//! What a room tells, in its order: a message on its way to the disk holds up what is told after it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::command::From;
use super::frame::Snapshot;
use super::link::Link;
use super::recorder::Appended;
use super::state::Said;
use super::types::{Message, Position};
use crate::partition::Refusal;
use crate::store::rooms::StoredMessage;

pub(super) type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// Something that is told in its turn.
pub(super) enum Turn {
    Say(Said),
    Append {
        appended: Waiting<Appended>,
        message: Message,
        from: From,
        accepted: Instant,
    },
    Read {
        read: Waiting<Vec<StoredMessage>>,
        link: Arc<Link>,
        snapshot: Snapshot,
        since: Position,
    },
    /// What is stored and was never told is told before the messages that follow.
    CatchUp {
        read: Waiting<Vec<StoredMessage>>,
    },
    /// A message that is stored, and waits for those before it.
    Tell {
        appended: Appended,
        message: Message,
        from: From,
        accepted: Instant,
    },
}

/// What the first turn waited for.
pub(super) enum Resolved {
    Nothing,
    Appended(Result<Appended, Refusal>),
    Read(Result<Vec<StoredMessage>, Refusal>),
}

/// Waits until the first turn can be taken. Nothing is lost when it is dropped.
pub(super) async fn first(turns: &mut VecDeque<Turn>) -> Resolved {
    poll_fn(|context: &mut Context<'_>| match turns.front_mut() {
        None => Poll::Pending,
        Some(Turn::Say(_) | Turn::Tell { .. }) => Poll::Ready(Resolved::Nothing),
        Some(Turn::Append { appended, .. }) => {
            Poll::Ready(Resolved::Appended(ready!(appended.as_mut().poll(context))))
        }
        Some(Turn::Read { read, .. } | Turn::CatchUp { read }) => {
            Poll::Ready(Resolved::Read(ready!(read.as_mut().poll(context))))
        }
    })
    .await
}
