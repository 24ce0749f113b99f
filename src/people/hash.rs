//! Whom an audit of forgotten people names: a hash of the name, keyed with the data directory's id.
//!
//! Whoever has a name and the directory can tell whether it was forgotten there, and when; nobody can read a name from it, and
//! two directories' audits cannot be matched.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// 64 hex digits: SHA-256 of the key's length in one byte, the key, and the name.
#[must_use]
pub fn person_hash(data_id: &str, person: &str) -> String {
    let length = u8::try_from(data_id.len()).unwrap_or(u8::MAX);
    let digest = Sha256::new().chain_update([length]).chain_update(data_id).chain_update(person).finalize();
    digest.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed hash would no longer be found by whoever looks for a name.
    #[test]
    fn the_hash_is_pinned_and_keyed() {
        let ada = person_hash("0123456789abcdef", "ada");
        assert_eq!(ada, "4f0c7ab71be73de7a44c6d6d6f2971d34d200972063125f52d7e7f9482541139");
        assert_ne!(ada, person_hash("0123456789abcdee", "ada"));
        assert_ne!(person_hash("ab", "c"), person_hash("a", "bc"), "where the key ends is part of it");
    }
}
