//! An end user who has come with a token, and what that lets one do: everything as oneself, nothing as anybody else.

use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};

use super::policy::{self, Does, Feature, Names, Policy};
use super::token::{Claims, TokenScope, Wrong};
use super::{Keys, bearer, unauthorized};
use crate::config::Scope;
use crate::http::App;
use crate::http::path::segment;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::names::is_free_name;

/// The query parameter that a token comes in where a browser cannot set a header.
pub(in crate::http) const IN_QUERY: &str = "access_token";

/// Laid over every request of a listener on which tokens are worth nothing.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct KeysAlone;

/// Laid over every route of what is declared deleted, where there is nothing left that a token could be too narrow for.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct AllGone;

/// See the module.
#[derive(Debug)]
pub(in crate::http) struct EndUser {
    claims: Claims,
}

impl Keys {
    /// The end user of a request that carries no known key.
    ///
    /// # Errors
    /// 401 without a good token; 403 where it may not go.
    pub(super) fn end_user(&self, parts: &Parts, scope: Scope, app: &App) -> Result<EndUser, Problem> {
        let pattern = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        // No row of the table asks for this scope; if one ever did, it would be refused all the same.
        let tokens_count = scope != Scope::Admin && parts.extensions.get::<KeysAlone>().is_none();
        let policy = policy::of(&parts.method, pattern).filter(|_| tokens_count);
        let is_gone = tokens_count && parts.extensions.get::<AllGone>().is_some();
        let in_query = is_gone || policy.is_some_and(|policy| policy.in_query);
        let token = shown(&parts.headers, &parts.uri, in_query).ok_or_else(unauthorized)?;
        let is_user = |name: &str| is_free_name(name, app.limits.max_person_bytes);
        let (claims, secret) =
            self.tokens.believe(&token, app.clock.now_ms(), is_user).map_err(not_believed)?;
        let user = EndUser { claims };
        let allowed = match policy {
            _ if is_gone => Ok(()),
            Some(policy) => user.may(policy, pattern, &parts.uri),
            None => Err(forbidden("no token reaches this: it takes a key".to_owned())),
        };
        // Whose secret, and not whose name. Below what a page could flood a log with.
        allowed
            .inspect_err(|_| tracing::debug!(secret, pattern, "a token was used beyond what it is for"))?;
        Ok(user)
    }
}

/// The token that a request shows. A header counts, whatever it says, before the query; a key is no token and so never
/// taken from there.
fn shown(headers: &HeaderMap, uri: &Uri, in_query: bool) -> Option<String> {
    if headers.contains_key(header::AUTHORIZATION) {
        let token = std::str::from_utf8(bearer(headers)?).ok()?;
        return is_like_a_token(token).then(|| token.to_owned());
    }
    let query = Query::parse(uri.query().filter(|_| in_query)).ok()?;
    let token = query.one(IN_QUERY).ok()??;
    is_like_a_token(token).then(|| token.to_owned())
}

/// Whether to say what is wrong with it as a token: what has no three parts is an unknown key.
fn is_like_a_token(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

fn not_believed(wrong: Wrong) -> Problem {
    let problem = |word, detail: &str| Problem::new(StatusCode::UNAUTHORIZED, word, detail);
    match wrong {
        Wrong::NotOurs => problem(
            "invalid_token",
            "the token is no JWT that a secret of auth.token_secrets signs with HS256",
        ),
        Wrong::Expired => problem("token_expired", "the token has ended: get a new one"),
        Wrong::Says(allowed) => problem("invalid_token", &format!("the token is signed, but {allowed}")),
        Wrong::Claims(claim) => problem(
            "invalid_token",
            &format!("the token is signed, but its claim `{claim}` is unknown here: is it misspelt?"),
        ),
    }
}

fn forbidden(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

impl EndUser {
    /// Who it is.
    pub(in crate::http) fn name(&self) -> &str {
        &self.claims.sub
    }

    /// How long its token still lives; a stream that it opens lives no longer.
    pub(in crate::http) fn lives(&self, now_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.claims.ends_at_ms - now_ms).unwrap_or(0))
    }

    /// Lets a long request go on.
    ///
    /// # Errors
    /// `token_expired`: it has lasted longer than its token.
    pub(in crate::http) fn is_still_there(&self, now_ms: i64) -> Result<(), Problem> {
        if self.lives(now_ms).is_zero() { Err(not_believed(Wrong::Expired)) } else { Ok(()) }
    }

    fn may(&self, policy: &Policy, pattern: &str, uri: &Uri) -> Result<(), Problem> {
        let feature = policy.feature;
        let covers = |scope: &TokenScope| {
            *scope == feature.scope() || (*scope == TokenScope::Read && policy.does == Does::Looks)
        };
        if self.claims.scope.as_ref().is_some_and(|scopes| !scopes.iter().any(covers)) {
            return Err(forbidden(format!("the token's `scope` lacks {}", feature.word())));
        }
        let placeholders = pattern
            .split('/')
            .skip(1)
            .zip(0..)
            .filter_map(|(part, at)| Some((part.strip_prefix('{')?.strip_suffix('}')?, at)));
        let mut named = policy.names == Names::Inside;
        for (placeholder, at) in placeholders {
            named |= placeholder == feature.narrowed_by();
            let name = segment(uri, at)?;
            match placeholder {
                "user" => self.is(name.as_deref().unwrap_or_default(), None)?,
                _ if placeholder == feature.narrowed_by() => {
                    self.reaches(feature, name.as_deref().unwrap_or_default())?;
                }
                _ => {}
            }
        }
        if !named && self.only(feature).is_some() {
            return Err(beyond(feature, "and this is about all of them"));
        }
        Ok(())
    }

    /// Allows what is done as this user.
    ///
    /// # Errors
    /// `not_your_user`.
    pub(in crate::http) fn is(&self, name: &str, field: Option<&'static str>) -> Result<(), Problem> {
        if name == self.name() {
            return Ok(());
        }
        let detail = "the token is another user's: it may act and look only as its own";
        let problem = Problem::new(StatusCode::FORBIDDEN, "not_your_user", detail);
        Err(match field {
            Some(field) => problem.of_field(field),
            None => problem,
        })
    }

    /// Allows an item, a workshop or a room.
    ///
    /// # Errors
    /// `beyond_token`, if the token is narrowed to others.
    pub(in crate::http) fn reaches(&self, feature: Feature, name: &str) -> Result<(), Problem> {
        match self.only(feature) {
            Some(only) if !only.iter().any(|allowed| allowed == name) => {
                Err(beyond(feature, "and not this one"))
            }
            _ => Ok(()),
        }
    }

    /// Whether its token is for some items, workshops or rooms alone.
    pub(in crate::http) fn is_narrowed(&self, feature: Feature) -> bool {
        self.only(feature).is_some()
    }

    fn only(&self, feature: Feature) -> Option<&[String]> {
        let claims = &self.claims;
        match feature {
            Feature::Likes => claims.items.as_deref(),
            Feature::Reservations => claims.workshops.as_deref(),
            Feature::Rooms => claims.rooms.as_deref(),
        }
    }
}

fn beyond(feature: Feature, why: &str) -> Problem {
    let detail = format!("the token is for some only, by its claim `{}`, {why}", feature.narrowed_by());
    Problem::new(StatusCode::FORBIDDEN, "beyond_token", detail)
}
