//! What actors keep in memory: bounded in number, and gone when nobody touches it.
//!
//! Two generations: what is touched moves to the young one; when the young one is half the bound, or an
//! idle period ends, the old one is dropped and the young one becomes old. No clock and no list per
//! entry, and an entry untouched for two periods is surely gone. Nothing but speed may rest on it.

use std::borrow::Borrow;
use std::hash::Hash;

use foldhash::HashMap;

/// A bounded map from key to state that forgets what is idle.
#[derive(Debug)]
pub struct Resident<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    max_generation: usize,
}

impl<K: Eq + Hash, V> Resident<K, V> {
    /// At most `max` entries (at least two).
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), max_generation: (max / 2).max(1) }
    }

    /// The state of a key, if it is in memory; it counts as touched.
    pub fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if !self.young.contains_key(key) {
            let (key, state) = self.old.remove_entry(key)?;
            self.insert(key, state);
        }
        self.young.get(key)
    }

    /// Keeps the state of a key.
    pub fn insert(&mut self, key: K, state: V) {
        if self.young.len() >= self.max_generation && !self.young.contains_key(&key) {
            self.rotate();
        }
        self.old.remove(&key);
        self.young.insert(key, state);
    }

    /// Forgets one key; its state, if it was in memory.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        // A key is in one generation at most.
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Ends an idle period: what was not touched since the last one leaves memory.
    pub fn rotate(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.young = HashMap::default();
        self.old = HashMap::default();
    }

    /// Entries in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_holds_more_than_its_bound_and_keeps_the_newest() {
        let mut resident = Resident::new(10);
        for key in 0..1000 {
            resident.insert(key, key);
            assert!(resident.len() <= 10);
            assert_eq!(resident.get(&key), Some(&key));
        }
    }

    #[test]
    fn what_is_touched_stays_and_what_is_idle_leaves() {
        let mut resident = Resident::new(10);
        resident.insert("busy", 1);
        resident.insert("idle", 2);
        resident.rotate();
        assert_eq!(resident.get("busy"), Some(&1));
        resident.rotate();
        assert_eq!(resident.get("busy"), Some(&1));
        assert_eq!(resident.get("idle"), None);
    }

    #[test]
    fn a_key_has_one_state() {
        let mut resident = Resident::new(10);
        resident.insert("key", 1);
        resident.rotate();
        resident.insert("key", 2);
        assert_eq!(resident.get("key"), Some(&2));
        assert_eq!(resident.len(), 1);
    }
}
