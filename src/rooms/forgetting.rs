//! Forgetting a user in every room of this process: it is sent away, and what it said loses its name.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::command::{Command, Forgotten};
use super::denied::Denied;
use super::registry::{OFFER_PAUSE, Rooms};
use super::room::{Rejected, Room};
use super::types::UserId;
use crate::partition::Refusal;

/// Rooms looked at before others of the runtime get their turn.
const TURN: usize = 256;

impl Rooms {
    /// Forgets a user everywhere; in how many rooms it was known, and how many messages it had said there. A room that
    /// sleeps and does not know it goes on sleeping.
    ///
    /// # Errors
    /// A room's refusal, or [`Refusal::OutcomeUnknown`] if it does not answer in time.
    pub async fn forget_user(&self, user: &UserId) -> Result<(u64, u64), Refusal> {
        self.forget_sender(user);
        let (mut rooms, mut messages) = (0, 0);
        for (looked_at, room) in self.all().iter().enumerate() {
            if looked_at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            if room.peek(|state| state.knows(user)) == Some(false) {
                continue;
            }
            let forgotten = self.forget_in(room, user).await?;
            rooms += u64::from(forgotten.was_online || forgotten.messages > 0);
            messages += forgotten.messages as u64;
        }
        Ok((rooms, messages))
    }

    async fn forget_in(&self, room: &Arc<Room>, user: &UserId) -> Result<Forgotten, Refusal> {
        let (reply, answer) = oneshot::channel();
        let mut command = Command::Forget { user: user.clone(), reply };
        loop {
            match room.offer(self, command, None) {
                Ok(()) => break,
                // Whoever comes to a room of its name now comes to one that knows nobody.
                Err(Rejected::Gone(_)) => return Ok(Forgotten::default()),
                Err(Rejected::Full(back)) => {
                    command = back;
                    tokio::time::sleep(OFFER_PAUSE).await;
                }
            }
        }
        self.wait(answer).await.map_err(|denied| match denied {
            Denied::Refused(refusal) => refusal,
            _ => Refusal::Unavailable,
        })
    }
}
