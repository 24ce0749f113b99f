//! How much each user and each API key may say, whatever the room and the way. What is refused here wakes no room.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::denied::Denied;
use super::rate::Bucket;
use super::settings::Settings;
use super::types::UserId;
use crate::partition::Resident;

/// See the module.
#[derive(Debug)]
pub(super) struct Senders {
    users: Rates<UserId>,
    keys: Rates<Arc<str>>,
}

/// Buckets of those who spoke lately. One that is forgotten, because too many others speak, is full again.
#[derive(Debug)]
struct Rates<K> {
    buckets: Mutex<Resident<K, Bucket>>,
    per_second: u32,
}

impl Senders {
    pub(super) fn new(settings: &Settings) -> Self {
        let remembered = settings.rated_senders;
        Self {
            users: Rates::new(settings.user_messages_per_s, remembered),
            keys: Rates::new(settings.key_messages_per_s, remembered),
        }
    }

    /// Takes a message of a user's rate and of a key's.
    ///
    /// # Errors
    /// [`Denied::RateLimited`].
    pub(super) fn may_say(
        &self,
        user: Option<&UserId>,
        key: Option<&str>,
        now_ms: i64,
    ) -> Result<(), Denied> {
        if let Some(user) = user
            && !self.users.take(user.clone(), now_ms)
        {
            return Err(Denied::RateLimited("rooms.user_messages_per_s"));
        }
        if let Some(key) = key
            && !self.keys.take(key.into(), now_ms)
        {
            return Err(Denied::RateLimited("rooms.key_messages_per_s"));
        }
        Ok(())
    }

    /// Remembers nothing of a user.
    pub(super) fn forget(&self, user: &UserId) {
        self.users.buckets.lock().unwrap_or_else(PoisonError::into_inner).remove(user);
    }
}

impl<K: Eq + Hash> Rates<K> {
    fn new(per_second: u32, remembered: usize) -> Self {
        Self { buckets: Mutex::new(Resident::new(remembered)), per_second }
    }

    fn take(&self, who: K, now_ms: i64) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = buckets.get(&who).copied();
        let mut bucket = known.unwrap_or_else(|| Bucket::full(self.per_second, now_ms));
        let taken = bucket.take(self.per_second, now_ms);
        buckets.insert(who, bucket);
        taken
    }
}
