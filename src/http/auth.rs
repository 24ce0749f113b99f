//! Who may do what: API keys of back ends, tokens of end users.
//!
//! Keys are 256 random bits, so their SHA-256 can be stored as it is; nobody guesses such a key from its
//! digest. Without keys and token secrets in the settings the service is open, which the settings allow on loopback only.
//!
//! A key is looked for first, and one that is found costs nothing more. Only a request that carries none may carry a
//! token: [`token`] believes it, [`policy`] says what its user may do, [`user`] sees to it that this is done as itself, and
//! [`streams`] that it does not hold too many open.

pub(super) mod policy;
pub(super) mod streams;
mod token;
pub(super) mod user;

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use self::policy::Feature;
use self::streams::Streams;
use self::token::Tokens;
use self::user::EndUser;
use super::App;
use super::ending::Stay;
use super::problem::Problem;
use crate::config::{ApiKey, Auth, Scope};

/// The keys that the settings know, and what signs tokens.
#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<ApiKey>,
    tokens: Tokens,
    streams: Streams,
}

impl From<&Auth> for Keys {
    fn from(auth: &Auth) -> Self {
        Self { keys: auth.keys.clone(), tokens: auth.into(), streams: Streams::new(auth.token_max_streams) }
    }
}

/// Who asks.
enum Caller<'a> {
    /// Somebody: nobody is asked who they are.
    Anybody,
    /// A back end, by its key's name.
    Key(&'a str),
    /// An end user, by a token.
    User(EndUser),
}

impl Keys {
    /// Whether there are none, and the service is open.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.tokens.is_empty()
    }

    /// Whether tokens are accepted.
    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The key that a request carries; `None` if it carries none that is known.
    fn of(&self, headers: &HeaderMap) -> Option<&ApiKey> {
        let digest = Sha256::digest(bearer(headers)?);
        // Every key is compared, whichever fits: the time tells nothing.
        let mut found = None;
        for known in &self.keys {
            if bool::from(known.sha256.as_bytes().ct_eq(digest.as_slice())) {
                found = Some(known);
            }
        }
        found
    }

    /// Who asks, if it may what a route does.
    fn check(&self, parts: &Parts, scope: Scope, app: &App) -> Result<Caller<'_>, Problem> {
        if self.is_empty() {
            return Ok(Caller::Anybody);
        }
        let Some(key) = self.of(&parts.headers) else {
            return match self.has_tokens() {
                true => self.end_user(parts, scope, app).map(Caller::User),
                false => Err(unauthorized()),
            };
        };
        if key.scopes.contains(&scope) {
            return Ok(Caller::Key(&key.name));
        }
        tracing::warn!(key = key.name, ?scope, "a key was used beyond its scopes");
        let detail = format!("this key has no scope {}", format!("{scope:?}").to_ascii_lowercase());
        Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail))
    }
}

/// What an `Authorization: Bearer` carries.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let header = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, credential) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(credential)
}

fn unauthorized() -> Problem {
    let detail = "send `Authorization: Bearer` and a known key";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
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

/// Proof that the request may do what the route does; of an end user, as long as it is done as itself, which is asked
/// here of what does not stand in the path. Of everybody else nothing more is asked.
#[derive(Debug)]
pub(super) struct Permit<S> {
    user: Option<Arc<EndUser>>,
    _scope: PhantomData<S>,
}

impl<S> Clone for Permit<S> {
    fn clone(&self) -> Self {
        Self::of(self.user.clone())
    }
}

impl<S> Permit<S> {
    fn of(user: Option<Arc<EndUser>>) -> Self {
        Self { user, _scope: PhantomData }
    }

    /// The end user, if it is one.
    pub(super) fn user(&self) -> Option<&EndUser> {
        self.user.as_deref()
    }

    /// Allows what is done as, or asked about, a user.
    ///
    /// # Errors
    /// `not_your_user`: an end user is not this one.
    pub(super) fn is(&self, name: &str, field: &'static str) -> Result<(), Problem> {
        self.user().map_or(Ok(()), |user| user.is(name, Some(field)))
    }

    /// Allows an item, a workshop or a room.
    ///
    /// # Errors
    /// `beyond_token`: an end user's token is narrowed to others.
    pub(super) fn reaches(&self, feature: Feature, name: &str) -> Result<(), Problem> {
        self.user().map_or(Ok(()), |user| user.reaches(feature, name))
    }

    /// Lets a stream begin, which goes on by what this returns; `None`: nobody counts it, and it ends when it likes.
    ///
    /// # Errors
    /// `too_many_connections`: an end user has as many streams open as it may.
    pub(super) fn stay(&self, app: &App) -> Result<Option<Stay>, Problem> {
        let Some(user) = self.user() else { return Ok(None) };
        let place = app.keys.streams.open(user.name()).ok_or_else(|| {
            let detail = "no more streams of this user: see auth.token_max_streams";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", detail);
            problem.retry_after(u64::from(app.limits.retry_after_s))
        })?;
        Ok(Some(Stay::new(user.lives(app.clock.now_ms()), place)))
    }
}

impl<S: Asks> FromRequestParts<App> for Permit<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Ok(match app.keys.check(parts, S::SCOPE, app)? {
            Caller::Anybody | Caller::Key(_) => Self::of(None),
            Caller::User(user) => Self::of(Some(Arc::new(user))),
        })
    }
}

/// A permit with the name of the key that a request was allowed by, for limits that are a key's. Those of an end user
/// are its own.
#[derive(Debug)]
pub(super) struct Key<S> {
    pub name: Option<Box<str>>,
    pub permit: Permit<S>,
}

impl<S: Asks> FromRequestParts<App> for Key<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Ok(match app.keys.check(parts, S::SCOPE, app)? {
            Caller::Anybody => Self { name: None, permit: Permit::of(None) },
            Caller::Key(name) => Self { name: Some(name.into()), permit: Permit::of(None) },
            Caller::User(user) => {
                // No key's name has a control character.
                let name = format!("\0{}", user.name()).into();
                Self { name: Some(name), permit: Permit::of(Some(Arc::new(user))) }
            }
        })
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
