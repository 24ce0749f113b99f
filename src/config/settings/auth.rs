use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::secret::SharedSecret;
use crate::config::rule::{Keys, Rule, whole};

/// `[auth]`: who may call. With neither keys, token secrets nor `open`, the service listens on loopback addresses only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// Serves callers without a key on addresses that other machines reach.
    pub open: bool,
    /// The keys that are accepted. At most 1,000; no two share a name or a digest.
    pub keys: Vec<ApiKey>,
    /// What signs the tokens of end users. At most 16, so that one can follow another; no two share a name or the
    /// secret itself.
    pub token_secrets: Vec<TokenSecret>,
    /// Seconds that a token may still live when it is shown. 1 to 86,400 (a day).
    pub token_max_ttl_s: u32,
    /// Streams (WebSockets, server-sent events, likes in bulk) that one end user may have open at once. 1 to 100,000.
    pub token_max_streams: usize,
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            open: false,
            keys: Vec::new(),
            token_secrets: Vec::new(),
            token_max_ttl_s: 3_600,
            token_max_streams: 16,
        }
    }
}

impl Auth {
    pub(crate) const KEYS: Keys = &[
        ("open", Rule::Switch),
        (
            "keys",
            Rule::Entries {
                max: 1_000,
                keys: &[
                    ("name", Rule::Text { min: 1, max: 64 }),
                    ("sha256", Rule::Sha256),
                    ("scopes", Rule::SomeWords(&["read", "write", "admin"])),
                ],
            },
        ),
        (
            "token_secrets",
            Rule::Entries {
                max: 16,
                keys: &[("name", Rule::Text { min: 1, max: 64 }), ("secret_base64", Rule::Secret)],
            },
        ),
        ("token_max_ttl_s", whole(1, 86_400)),
        ("token_max_streams", whole(1, 100_000)),
    ];

    /// Whether nobody is asked who they are.
    pub fn asks_nobody(&self) -> bool {
        self.keys.is_empty() && self.token_secrets.is_empty()
    }
}

/// A key that callers present. Only its digest is kept, so the settings give nobody access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Who holds it, for the log. 1 to 64 characters.
    pub name: String,
    /// SHA-256 of the key's bytes, as 64 hex digits.
    pub sha256: KeyDigest,
    /// What it may do; at least one.
    pub scopes: BTreeSet<Scope>,
}

/// A secret that a site's back end shares with this service and signs its users' tokens with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSecret {
    /// What a token calls it in its `kid`, and the log too. 1 to 64 characters.
    pub name: String,
    /// The secret's bytes in base64.
    pub secret_base64: SharedSecret,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look.
    Read,
    /// Like and reserve.
    Write,
    /// Delete and configure.
    Admin,
}

/// The SHA-256 of a key. Written as 64 hex digits; `Debug` shows the first eight, enough to tell two apart.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest, to compare in constant time.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The text is no 64 hex digits. It is not repeated: it may be the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 64 hex digits")]
pub struct NotADigest;

impl FromStr for KeyDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(NotADigest) };
        let mut digest = [0; 32];
        if pairs.len() != digest.len() {
            return Err(NotADigest);
        }
        for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
            *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
        }
        Ok(Self(digest))
    }
}

fn hex_digit(byte: u8) -> Result<u8, NotADigest> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(NotADigest),
    }
}

impl TryFrom<String> for KeyDigest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl From<KeyDigest> for String {
    fn from(digest: KeyDigest) -> Self {
        digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.8}…", String::from(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_it_was_written() {
        let text = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
        let digest: KeyDigest = text.parse().unwrap();
        assert_eq!(digest.as_bytes()[..3], [0x5e, 0x88, 0x48]);
        assert_eq!(String::from(digest), text);
        assert_eq!(text.to_uppercase().parse(), Ok(digest));
        assert_eq!(format!("{digest:?}"), "5e884898…");
    }

    #[test]
    fn anything_else_is_no_digest() {
        for text in ["", "5e", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65), &"é".repeat(32)] {
            assert_eq!(text.parse::<KeyDigest>(), Err(NotADigest), "{text}");
        }
    }
}
