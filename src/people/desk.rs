//! How a partition does the steps of forgetting a person: each with its note for the audit, in one transaction.

use super::command::{Command, Whose};
use crate::likes::actor::LikesActors;
use crate::partition::Decided;
use crate::rooms::records::RoomRecords;
use crate::store::people::{Forgotten, Noted};
use crate::store::{Error, PeopleStore, Store};

/// Does some steps, in order.
///
/// # Errors
/// The store's.
pub(crate) fn decide<S: Store>(
    store: &mut S,
    commands: &mut [&mut Command],
    (likes, rooms): (&mut LikesActors, &mut RoomRecords),
    now_ms: i64,
) -> Result<Decided, Error> {
    for command in commands {
        match &mut **command {
            Command::Begin { forgetting, reply } => reply.set(store.begin_forgetting(forgetting, now_ms)?),
            Command::Unfinished { reply } => reply.set(store.unfinished_forgettings()?),
            Command::Likes { of, shards, limit, reply } => {
                let (person, policy) = (&*of.forgetting.person, of.forgetting.policy);
                let Some(forgotten) = likes.forget_likes(store, person, policy, (*shards, *limit))? else {
                    return Ok(Decided::Conflict);
                };
                note(store, of, Forgotten { likes: forgotten.likes, ..Forgotten::default() }, now_ms)?;
                reply.set(forgotten);
            }
            Command::Holder { of, reply } => {
                let was_there = store.forget_holder(&of.forgetting.person)?;
                note(store, of, Forgotten { holders: u64::from(was_there), ..Forgotten::default() }, now_ms)?;
                reply.set(was_there);
            }
            Command::Messages { of, after, limit, reply } => {
                let (messages, at) = store.forget_speaker(&of.forgetting.person, *after, *limit)?;
                note(store, of, Forgotten { messages, ..Forgotten::default() }, now_ms)?;
                if messages > 0 {
                    // Memory knows whose ids the messages had.
                    rooms.forget();
                }
                reply.set(at);
            }
            Command::Forgotten { id, reply } => reply.set(store.forgotten(*id)?),
            Command::End { of, reply } => {
                store.end_forgetting(of.forgetting.id)?;
                note_always(store, of, Forgotten::default(), now_ms)?;
                reply.set(());
            }
        }
    }
    Ok(Decided::Ready)
}

/// Where nothing was, nothing is noted.
fn note<S: PeopleStore>(store: &mut S, of: &Whose, what: Forgotten, now_ms: i64) -> Result<(), Error> {
    if what == Forgotten::default() {
        return Ok(());
    }
    note_always(store, of, what, now_ms)
}

fn note_always<S: PeopleStore>(store: &mut S, of: &Whose, what: Forgotten, at_ms: i64) -> Result<(), Error> {
    let Whose { forgetting, hash } = of;
    store.note_forgotten(&Noted {
        id: forgetting.id,
        person_hash: hash,
        policy: forgetting.policy,
        at_ms,
        what,
    })
}
