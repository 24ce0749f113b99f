//! API keys: who may do what.
//!
//! Keys are 256 random bits, so their SHA-256 can be stored as it is; nobody guesses such a key from its
//! digest. Without keys in the settings the service is open, which the settings allow on loopback only.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::App;
use super::problem::Problem;
use crate::config::{ApiKey, Auth, Scope};

/// The keys that the settings know.
#[derive(Debug, Default)]
pub struct Keys(Vec<ApiKey>);

impl From<&Auth> for Keys {
    fn from(auth: &Auth) -> Self {
        Self(auth.keys.clone())
    }
}

impl Keys {
    /// Whether there are none, and the service is open.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key that a request carries; `None` if it carries none that is known.
    fn of(&self, headers: &HeaderMap) -> Option<&ApiKey> {
        let header = headers.get(AUTHORIZATION)?.as_bytes();
        let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return None;
        }
        let digest = Sha256::digest(token);
        // Every key is compared, whichever fits: the time tells nothing.
        let mut found = None;
        for known in &self.0 {
            if bool::from(known.sha256.as_bytes().ct_eq(digest.as_slice())) {
                found = Some(known);
            }
        }
        found
    }

    /// The name of the key that allows it; `None` where none is needed.
    fn check(&self, headers: &HeaderMap, scope: Scope) -> Result<Option<&str>, Problem> {
        if self.is_empty() {
            return Ok(None);
        }
        let key = self.of(headers).ok_or_else(|| {
            Problem::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "send `Authorization: Bearer` and a known key",
            )
        })?;
        if key.scopes.contains(&scope) {
            return Ok(Some(&key.name));
        }
        tracing::warn!(key = key.name, ?scope, "a key was used beyond its scopes");
        let detail = format!("this key has no scope {}", format!("{scope:?}").to_ascii_lowercase());
        Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail))
    }
}

/// What a route asks of a key. An argument of a handler: nothing is read or decided without it.
pub(super) trait Asks {
    const SCOPE: Scope;
}

#[derive(Debug)]
pub(super) struct Read;
#[derive(Debug)]
pub(super) struct Write;
#[derive(Debug)]
pub(super) struct Admin;

impl Asks for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Asks for Write {
    const SCOPE: Scope = Scope::Write;
}

impl Asks for Admin {
    const SCOPE: Scope = Scope::Admin;
}

/// Proof that the request may do what the route does.
#[derive(Debug)]
pub(super) struct Permit<S>(PhantomData<S>);

impl<S: Asks> FromRequestParts<App> for Permit<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        app.keys.check(&parts.headers, S::SCOPE)?;
        Ok(Self(PhantomData))
    }
}

/// The name of the key that a request was allowed by, for limits that are a key's.
#[derive(Debug)]
pub(super) struct Key<S>(pub(super) Option<Box<str>>, PhantomData<S>);

impl<S: Asks> FromRequestParts<App> for Key<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let name = app.keys.check(&parts.headers, S::SCOPE)?;
        Ok(Self(name.map(Into::into), PhantomData))
    }
}

/// A new key and what the settings keep of it.
#[derive(Debug)]
pub struct NewKey {
    /// For the client, shown once.
    pub key: String,
    /// For `auth.keys`.
    pub sha256: String,
}

/// Makes a key of 256 random bits.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn new_key() -> Result<NewKey, getrandom::Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    let key = format!("hc_{}", hex(&bytes));
    let sha256 = hex(&Sha256::digest(key.as_bytes()));
    Ok(NewKey { key, sha256 })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
