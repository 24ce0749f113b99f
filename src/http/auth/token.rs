//! Tokens of end users: what a site's back end has signed, checked. No I/O and no clock.
//!
//! A token is a JWT (RFC 7519) signed with HS256, so that every back end has a library for it. The algorithm is this one
//! whatever a token says, and a token that says another is refused. Nothing in it is believed before its signature is.
//!
//! Not by a JWT library: `jsonwebtoken` brings 34 crates for algorithms that are refused here, or, without its own
//! cryptography, leaves the HMAC to us. Of what remains, the signature is `hmac`'s, which compares in constant time.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use sha2::Sha256;

use crate::config::Auth;

/// Longer ones are not looked at.
const MOST_BYTES: usize = 4_096;
/// Names that a claim may list.
const MOST_NAMES: usize = 100;
/// What clocks of two machines may differ by, in seconds.
const LEEWAY_S: f64 = 5.0;
/// Whom a token is for, if it says so.
const AUDIENCE: &str = "headcount";

/// The secrets that tokens are signed with, and how long a token may live.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    secrets: Vec<Secret>,
    max_ttl_s: u32,
}

/// One of them, ready to compute with. Its `Debug` shows nothing of it.
#[derive(Debug)]
struct Secret {
    name: Box<str>,
    mac: Hmac<Sha256>,
}

impl From<&Auth> for Tokens {
    fn from(auth: &Auth) -> Self {
        let secret = |secret: &crate::config::TokenSecret| {
            // HMAC takes a key of any length.
            let mac = Hmac::new_from_slice(secret.secret_base64.as_bytes()).ok()?;
            Some(Secret { name: secret.name.as_str().into(), mac })
        };
        Self {
            secrets: auth.token_secrets.iter().filter_map(secret).collect(),
            max_ttl_s: auth.token_max_ttl_s,
        }
    }
}

/// What a token says, once it is believed.
#[derive(Debug, PartialEq)]
pub(super) struct Claims {
    /// The user.
    pub sub: String,
    /// When it ends, the leeway included; ms since 1970.
    pub ends_at_ms: i64,
    /// What it is for; `None`: everything that an end user may do.
    pub scope: Option<Vec<TokenScope>>,
    /// The only items that it is for.
    pub items: Option<Vec<String>>,
    /// The only rooms.
    pub rooms: Option<Vec<String>>,
    /// The only workshops.
    pub workshops: Option<Vec<String>>,
}

/// What a token may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenScope {
    /// To like, and to look at likes.
    Likes,
    /// To reserve, and to look at workshops.
    Reservations,
    /// To join rooms and speak there, and to listen.
    Rooms,
    /// To look at all of that.
    Read,
}

impl TokenScope {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "likes" => Some(Self::Likes),
            "reservations" => Some(Self::Reservations),
            "rooms" => Some(Self::Rooms),
            "read" => Some(Self::Read),
            _ => None,
        }
    }
}

/// Why a token is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is none, or nobody here has signed it.
    NotOurs,
    /// It has ended.
    Expired,
    /// It is signed, and says something that it may not; what it may.
    Says(&'static str),
    /// It is signed, and claims what nobody here knows; which.
    Claims(String),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default, deserialize_with = "even_null")]
    kid: Option<String>,
    #[serde(default, deserialize_with = "even_null")]
    typ: Option<String>,
    /// Whatever it lists has to be understood, and nothing is.
    #[serde(default, deserialize_with = "even_null")]
    crit: Option<IgnoredAny>,
}

/// `null` is not absent: what narrows a token must not get lost.
#[derive(Deserialize)]
struct Said {
    sub: String,
    exp: f64,
    #[serde(default, deserialize_with = "even_null")]
    nbf: Option<f64>,
    #[serde(default, deserialize_with = "even_null")]
    aud: Option<OneOrMany>,
    #[serde(default, deserialize_with = "even_null")]
    scope: Option<OneOrMany>,
    #[serde(default, deserialize_with = "even_null")]
    item: Option<OneOrMany>,
    #[serde(default, deserialize_with = "even_null")]
    room: Option<OneOrMany>,
    #[serde(default, deserialize_with = "even_null")]
    workshop: Option<OneOrMany>,
    /// Registered by RFC 7519, put in by libraries, and of no meaning here: whatever they are.
    #[serde(rename = "iss")]
    _iss: Option<IgnoredAny>,
    #[serde(rename = "iat")]
    _iat: Option<IgnoredAny>,
    #[serde(rename = "jti")]
    _jti: Option<IgnoredAny>,
    /// What is none of these. A misspelt claim that was meant to narrow the token is among them.
    #[serde(flatten)]
    unknown: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl Tokens {
    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// What a token says, at a time in ms since 1970, of a user whose name `is_user`; and the name of the secret that it is
    /// signed with.
    ///
    /// # Errors
    /// See [`Wrong`].
    pub(super) fn believe(
        &self,
        token: &str,
        now_ms: i64,
        is_user: impl FnOnce(&str) -> bool,
    ) -> Result<(Claims, &str), Wrong> {
        let (claims, secret) = self.signed(token).ok_or(Wrong::NotOurs)?;
        let shape = "its claims are an object with the text `sub` and the number `exp`, and what else it claims has its type";
        let said: Said = object(claims).ok_or(Wrong::Says(shape))?;
        Ok((self.check(said, now_ms, is_user)?, secret))
    }

    /// A token's claims as they are encoded, and the name of the secret that it is signed with.
    fn signed<'a, 'b>(&'a self, token: &'b str) -> Option<(&'b str, &'a str)> {
        if token.len() > MOST_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let header: Header = object(header)?;
        let is_jwt = header.typ.is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"));
        if header.alg != "HS256" || header.crit.is_some() || !is_jwt {
            return None;
        }
        let is_meant = |secret: &&Secret| header.kid.as_ref().is_none_or(|kid| **kid == *secret.name);
        let has_signed = |secret: &&Secret| {
            secret.mac.clone().chain_update(signed.as_bytes()).verify_slice(&signature).is_ok()
        };
        let secret = self.secrets.iter().filter(is_meant).find(has_signed)?;
        Some((claims, &secret.name))
    }

    fn check(&self, said: Said, now_ms: i64, is_user: impl FnOnce(&str) -> bool) -> Result<Claims, Wrong> {
        if let Some(claim) = said.unknown.into_keys().next() {
            return Err(Wrong::Claims(claim));
        }
        let now_s = now_ms as f64 / 1_000.0;
        if !said.exp.is_finite() || said.nbf.is_some_and(|nbf| !nbf.is_finite()) {
            return Err(Wrong::Says("`exp` and `nbf` are seconds since 1970"));
        }
        if now_s >= said.exp + LEEWAY_S {
            return Err(Wrong::Expired);
        }
        if said.exp > now_s + f64::from(self.max_ttl_s) + LEEWAY_S {
            return Err(Wrong::Says("`exp` is at most auth.token_max_ttl_s from now"));
        }
        if said.nbf.is_some_and(|nbf| nbf > now_s + LEEWAY_S) {
            return Err(Wrong::Says("`nbf` is still to come"));
        }
        if said.aud.is_some_and(|aud| !many(aud).iter().any(|one| one == AUDIENCE)) {
            return Err(Wrong::Says("`aud`, if it is there, names headcount"));
        }
        if !is_user(&said.sub) {
            return Err(Wrong::Says(
                "`sub` is the name of a user: not empty, not too long, no control character",
            ));
        }
        let scope = said.scope.map(scopes).transpose()?;
        // Below the end that was checked above, so it fits.
        #[expect(clippy::cast_possible_truncation, reason = "at most a day from now")]
        let ends_at_ms = ((said.exp + LEEWAY_S) * 1_000.0) as i64;
        Ok(Claims {
            sub: said.sub,
            ends_at_ms,
            scope,
            items: said.item.map(names).transpose()?,
            rooms: said.room.map(names).transpose()?,
            workshops: said.workshop.map(names).transpose()?,
        })
    }
}

/// A JSON object out of a token's part. An array would be taken for a struct, field by field.
fn object<T: DeserializeOwned>(part: &str) -> Option<T> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    let is_object = json.trim_ascii_start().starts_with(b"{");
    if is_object { serde_json::from_slice(&json).ok() } else { None }
}

fn many(claim: OneOrMany) -> Vec<String> {
    match claim {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    }
}

fn names(claim: OneOrMany) -> Result<Vec<String>, Wrong> {
    let names = many(claim);
    let fits = names.len() <= MOST_NAMES;
    fits.then_some(names).ok_or(Wrong::Says("`item`, `room` and `workshop` list at most 100 names each"))
}

/// A list of words, or one text of them with spaces in between (RFC 8693). An unknown one is a mistake worth hearing of.
fn scopes(claim: OneOrMany) -> Result<Vec<TokenScope>, Wrong> {
    let words = match &claim {
        OneOrMany::One(text) => text.split_ascii_whitespace().map(TokenScope::parse).collect(),
        OneOrMany::Many(words) => words.iter().map(|word| TokenScope::parse(word)).collect::<Option<_>>(),
    };
    words.ok_or(Wrong::Says("`scope` is some of likes, reservations, rooms, read"))
}

#[cfg(test)]
mod tests;
