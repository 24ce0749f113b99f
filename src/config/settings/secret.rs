use std::{fmt, str::FromStr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

/// A secret as it is: whoever has it can sign. `Debug` shows how long it is and nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SharedSecret(Vec<u8>);

impl SharedSecret {
    /// Fewer could be guessed: RFC 7518 asks of HS256 for a secret as long as its hash.
    pub const LEAST_BYTES: usize = 32;
    /// Longer ones are no better.
    pub const MOST_BYTES: usize = 1_024;

    /// The bytes to sign with.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The text is no secret. It is not repeated: perhaps it is one all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be base64 of 32 to 1024 bytes")]
pub struct NotASecret;

impl FromStr for SharedSecret {
    type Err = NotASecret;

    /// Of either alphabet, with its padding or without.
    fn from_str(text: &str) -> Result<Self, NotASecret> {
        let plain: String = text
            .trim_end_matches('=')
            .chars()
            .map(|letter| match letter {
                '-' => '+',
                '_' => '/',
                other => other,
            })
            .collect();
        let bytes = STANDARD_NO_PAD.decode(plain).map_err(|_| NotASecret)?;
        // One byte over and over is what somebody typed to have something there.
        let is_filler = bytes.windows(2).all(|pair| pair.first() == pair.last());
        let fits = (Self::LEAST_BYTES..=Self::MOST_BYTES).contains(&bytes.len());
        if fits && !is_filler { Ok(Self(bytes)) } else { Err(NotASecret) }
    }
}

impl TryFrom<String> for SharedSecret {
    type Error = NotASecret;

    fn try_from(text: String) -> Result<Self, NotASecret> {
        text.parse()
    }
}

impl From<SharedSecret> for String {
    fn from(secret: SharedSecret) -> Self {
        STANDARD_NO_PAD.encode(secret.0)
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_in_either_alphabet_and_never_shown() {
        let bytes: Vec<u8> = (200..240).collect();
        let text = STANDARD_NO_PAD.encode(&bytes);
        let secret: SharedSecret = text.parse().unwrap();
        assert_eq!(secret.as_bytes(), bytes);
        assert_eq!(String::from(secret.clone()), text);
        let other = text.replace('+', "-").replace('/', "_");
        assert_ne!(other, text);
        assert_eq!(format!("{other}==").parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "(40 bytes)");
    }

    #[test]
    fn what_could_be_guessed_is_no_secret() {
        let of = |bytes: usize| STANDARD_NO_PAD.encode((0..=255).cycle().take(bytes).collect::<Vec<u8>>());
        assert!(of(32).parse::<SharedSecret>().is_ok() && of(1_024).parse::<SharedSecret>().is_ok());
        for text in [of(31), of(1_025), String::new(), "A".repeat(64), "!".repeat(64), "é".repeat(64)] {
            assert_eq!(text.parse::<SharedSecret>(), Err(NotASecret), "{text}");
        }
    }
}
