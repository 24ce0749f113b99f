//! The streams that end users have open, counted by user, so that none of them takes all the places that there are.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// `auth.token_max_streams`
    most: usize,
    by_user: Arc<ByUser>,
}

type ByUser = Mutex<HashMap<Arc<str>, usize>>;

/// A stream's place among those of its user. Dropped, it is free again.
#[derive(Debug)]
pub(in crate::http) struct Place {
    user: Arc<str>,
    by_user: Arc<ByUser>,
}

impl Streams {
    pub(super) fn new(most: usize) -> Self {
        Self { most, by_user: Arc::default() }
    }

    /// A place for one more stream of a user; `None` if it has as many as it may.
    pub(super) fn open(&self, user: &str) -> Option<Place> {
        let user: Arc<str> = user.into();
        let mut by_user = lock(&self.by_user);
        let open = by_user.entry(Arc::clone(&user)).or_default();
        if *open >= self.most {
            return None;
        }
        *open += 1;
        Some(Place { user, by_user: Arc::clone(&self.by_user) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_user = lock(&self.by_user);
        if let Some(open) = by_user.get_mut(&self.user) {
            *open -= 1;
            if *open == 0 {
                by_user.remove(&self.user);
            }
        }
    }
}

fn lock(by_user: &ByUser) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
    // Nothing that panics runs under it.
    by_user.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_its_places_and_gets_them_back() {
        let streams = Streams::new(2);
        let adas = [streams.open("ada"), streams.open("ada")];
        assert!(adas.iter().all(Option::is_some) && streams.open("ada").is_none());
        let eves = streams.open("eve");
        assert!(eves.is_some(), "it is another one");
        let [first, second] = adas;
        drop(first);
        assert!(streams.open("ada").is_some(), "a free one");
        drop((second, eves));
        assert!(lock(&streams.by_user).is_empty(), "nobody is remembered who has none");
    }
}
