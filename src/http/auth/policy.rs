//! What an end user's token may do, route by route: one table, and what is not in it is refused.
//!
//! Names in a path are checked by its pattern, for every row alike: `{user}` is the token's own, and `{item}`, `{room}`
//! and `{workshop}` are among those that the token is narrowed to, if it is. What comes in a query or a body the handler
//! checks; a row says so with [`Names::Inside`], and a narrowed token gets nowhere else where the pattern names nothing.

use axum::http::Method;

use super::token::TokenScope;

/// What a route is about, for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Feature {
    /// Likes, totals and counters. Narrowed by `item`.
    Likes,
    /// Workshops, reservations and sets. Narrowed by `workshop`.
    Reservations,
    /// Rooms. Narrowed by `room`.
    Rooms,
}

impl Feature {
    /// The scope that covers it.
    pub(super) fn scope(self) -> TokenScope {
        match self {
            Self::Likes => TokenScope::Likes,
            Self::Reservations => TokenScope::Reservations,
            Self::Rooms => TokenScope::Rooms,
        }
    }

    /// The scope's word, which is the feature's.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Likes => "likes",
            Self::Reservations => "reservations",
            Self::Rooms => "rooms",
        }
    }

    /// What narrows a token to some of it: the claim's name, and the placeholder's in a pattern.
    pub(super) fn narrowed_by(self) -> &'static str {
        match self {
            Self::Likes => "item",
            Self::Reservations => "workshop",
            Self::Rooms => "room",
        }
    }
}

/// Whether a route changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// No: the scope `read` covers it too.
    Looks,
    /// Yes.
    Acts,
}

/// Where the names are that a token has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// In the path alone.
    Path,
    /// In the query or the body (too): the handler checks them.
    Inside,
}

/// A route that tokens may use.
#[derive(Debug)]
pub(in crate::http) struct Policy {
    pub(super) method: Method,
    /// The router's pattern.
    pub(super) path: &'static str,
    pub(in crate::http) feature: Feature,
    pub(super) does: Does,
    pub(super) names: Names,
    /// Whether a browser cannot set a header here (`EventSource`, `WebSocket`), so that the token may come in the query.
    pub(in crate::http) in_query: bool,
}

const fn row(method: Method, path: &'static str, feature: Feature, does: Does, names: Names) -> Policy {
    Policy { method, path, feature, does, names, in_query: false }
}

const fn stream(path: &'static str, feature: Feature, does: Does, names: Names) -> Policy {
    Policy { method: Method::GET, path, feature, does, names, in_query: true }
}

/// The table.
#[rustfmt::skip]
static TABLE: &[Policy] = {
    use Does::{Acts, Looks};
    use Feature::{Likes, Reservations, Rooms};
    use Names::{Inside, Path};
    &[
        row(Method::GET, "/likes", Likes, Looks, Inside),
        row(Method::GET, "/likes/{item}", Likes, Looks, Path),
        row(Method::POST, "/likes/{item}", Likes, Acts, Inside),
        row(Method::PUT, "/likes/{item}/users/{user}", Likes, Acts, Path),
        row(Method::DELETE, "/likes/{item}/users/{user}", Likes, Acts, Path),
        row(Method::GET, "/likes/{item}/users/{user}", Likes, Looks, Path),
        stream("/likes/{item}/events", Likes, Looks, Path),
        stream("/batch/likes/events", Likes, Looks, Inside),
        row(Method::GET, "/likes/{item}/history", Likes, Looks, Path),
        row(Method::GET, "/trending", Likes, Looks, Path),
        row(Method::POST, "/batch/likes", Likes, Acts, Inside),
        row(Method::POST, "/batch/likes/query", Likes, Looks, Inside),
        row(Method::GET, "/counters/{counter}", Likes, Looks, Path),
        row(Method::GET, "/users/{user}/likes", Likes, Looks, Path),

        row(Method::GET, "/workshops/{workshop}", Reservations, Looks, Path),
        row(Method::GET, "/workshops/{workshop}/status", Reservations, Looks, Path),
        row(Method::POST, "/workshops/{workshop}/reservations", Reservations, Acts, Inside),
        row(Method::GET, "/workshops/{workshop}/reservations/{requestId}", Reservations, Looks, Inside),
        row(Method::POST, "/workshops/{workshop}/reservations/{requestId}/confirm", Reservations, Acts, Inside),
        row(Method::POST, "/workshops/{workshop}/reservations/{requestId}/cancel", Reservations, Acts, Inside),
        row(Method::POST, "/workshops/{workshop}/reservations/{requestId}/extend", Reservations, Acts, Inside),
        row(Method::POST, "/reservations", Reservations, Acts, Inside),
        row(Method::GET, "/reservations/{requestId}", Reservations, Looks, Inside),
        row(Method::POST, "/reservations/{requestId}/confirm", Reservations, Acts, Inside),
        row(Method::POST, "/reservations/{requestId}/cancel", Reservations, Acts, Inside),
        row(Method::POST, "/reservations/{requestId}/extend", Reservations, Acts, Inside),

        row(Method::GET, "/rooms/{room}", Rooms, Looks, Path),
        row(Method::POST, "/rooms/{room}/join", Rooms, Acts, Inside),
        row(Method::POST, "/rooms/{room}/leave", Rooms, Acts, Inside),
        row(Method::POST, "/rooms/{room}/send", Rooms, Acts, Inside),
        stream("/rooms/{room}/events", Rooms, Looks, Path),
        stream("/rooms/{room}/socket", Rooms, Acts, Inside),
        row(Method::POST, "/join", Rooms, Acts, Inside),
        row(Method::POST, "/leave", Rooms, Acts, Inside),
        row(Method::POST, "/send", Rooms, Acts, Inside),
    ]
};

/// Routes that no token may use, on purpose: what names other people, and what is the operator's. Not looked at while
/// serving, where everything that is not in the table is refused; a test has every documented route in one of the two.
#[cfg(test)]
#[rustfmt::skip]
pub(in crate::http) static REFUSED: &[(Method, &str)] = &[
    // Who likes it, who has reserved, and every workshop's name.
    (Method::GET, "/likes/{item}/users"),
    (Method::GET, "/workshops"),
    (Method::GET, "/workshops/{workshop}/events"),
    (Method::GET, "/workshops/{workshop}/reservations"),
    // Nobody would be counted.
    (Method::POST, "/counters/{counter}"),
    // The operator's.
    (Method::DELETE, "/likes/{item}"),
    (Method::DELETE, "/users/{user}"),
    (Method::PUT, "/workshops/{workshop}"),
    (Method::DELETE, "/workshops/{workshop}"),
];

/// The row of a route, if tokens may use it at all.
pub(in crate::http) fn of(method: &Method, path: &str) -> Option<&'static Policy> {
    // A GET's handler answers HEAD too.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    TABLE.iter().find(|row| row.path == path && row.method == method)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Namespaces;

    /// Every documented route that asks for a key, as the router has it.
    fn documented() -> BTreeSet<(String, String)> {
        let (_, document) = crate::http::router::documented(&Namespaces::default()).split_for_parts();
        let document = serde_json::to_value(document).unwrap();
        let mut found = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let needs_no_key = operation["security"] == serde_json::json!([{}]);
                if !needs_no_key {
                    found.insert((method.to_uppercase(), path.clone()));
                }
            }
        }
        found
    }

    /// A route that is added has to be decided on.
    #[test]
    fn every_route_is_decided_once() {
        let allowed = TABLE.iter().map(|row| (row.method.to_string(), row.path.to_owned()));
        let refused = REFUSED.iter().map(|(method, path)| (method.to_string(), (*path).to_owned()));
        let decided: Vec<_> = allowed.chain(refused).collect();
        let set: BTreeSet<_> = decided.iter().cloned().collect();
        assert_eq!(set.len(), decided.len(), "a route is decided twice");
        assert_eq!(set, documented());
    }

    #[test]
    fn only_streams_take_a_token_in_the_query() {
        let in_query: Vec<&str> = TABLE.iter().filter(|row| row.in_query).map(|row| row.path).collect();
        let streams =
            ["/likes/{item}/events", "/batch/likes/events", "/rooms/{room}/events", "/rooms/{room}/socket"];
        assert_eq!(in_query, streams);
    }

    #[test]
    fn what_is_nowhere_is_refused() {
        assert!(of(&Method::GET, "/metrics").is_none() && of(&Method::POST, "/noop/likes/{item}").is_none());
        assert!(
            of(&Method::DELETE, "/likes/{item}").is_none() && of(&Method::PUT, "/likes/{item}").is_none()
        );
        assert!(of(&Method::HEAD, "/likes/{item}").is_some() && of(&Method::GET, "/likes/{item}").is_some());
    }
}
