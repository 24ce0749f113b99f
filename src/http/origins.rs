//! Which sites' pages may call: CORS, and the `Origin` of WebSockets, which CORS does not cover.
//!
//! A browser sends no cookie of ours anywhere, for there is none. What a page of another site could use is only that it
//! runs on a machine that reaches a service which asks nobody who they are; so the lists hold there too.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::problem::Problem;
use crate::config::Server;

/// How long a browser may remember what is allowed; Chromium remembers no longer.
const MAX_AGE: Duration = Duration::from_secs(7_200);

/// `server.cors_origins`
#[derive(Debug, Clone, Default)]
pub struct Origins {
    every: bool,
    allowed: Vec<HeaderValue>,
}

impl From<&Server> for Origins {
    fn from(server: &Server) -> Self {
        let every = server.cors_origins.iter().any(|origin| origin == "*");
        let header = |origin: &String| HeaderValue::from_str(origin).ok();
        Self { every, allowed: server.cors_origins.iter().filter_map(header).collect() }
    }
}

impl Origins {
    /// Lets a WebSocket's handshake go on that no page of a foreign site asks for. Who is no browser sends no `Origin`; a
    /// page of this service has its host there. Not its scheme: what ends TLS before this service does not tell it.
    ///
    /// # Errors
    /// `foreign_origin`.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let is_only_one = origins.next().is_none();
        if is_only_one && (self.every || self.allowed.contains(origin) || is_same(origin, headers)) {
            return Ok(());
        }
        let detail = "a page of another site may not open sockets here, unless server.cors_origins names it";
        Err(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", detail))
    }

    /// What answers preflights and lets pages read answers; `None` where no other site is allowed, so that requests pass
    /// through nothing.
    pub(super) fn layer(&self) -> Option<CorsLayer> {
        let allowed = match self.every {
            true => AllowOrigin::any(),
            false if self.allowed.is_empty() => return None,
            false => AllowOrigin::list(self.allowed.clone()),
        };
        let layer = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                header::IF_MATCH,
                header::IF_NONE_MATCH,
                HeaderName::from_static("last-event-id"),
            ])
            .expose_headers([header::RETRY_AFTER, header::ETAG])
            .max_age(MAX_AGE);
        Some(layer)
    }
}

fn is_same(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    authority.zip(host).is_some_and(|((_, authority), host)| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(allowed: &[&str], origins: &[&str], host: &str) -> bool {
        let cors_origins = allowed.iter().map(|origin| (*origin).to_owned()).collect();
        let list = Origins::from(&Server { cors_origins, ..Server::default() });
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        for origin in origins {
            headers.append(header::ORIGIN, origin.parse().unwrap());
        }
        list.check(&headers).is_err()
    }

    #[test]
    fn a_foreign_page_opens_no_socket() {
        let own = "localhost:8787";
        assert!(!refused(&[], &[], own), "no browser");
        for origin in ["http://localhost:8787", "https://localhost:8787", "http://LOCALHOST:8787"] {
            assert!(!refused(&[], &[origin], own), "{origin}");
        }
        for origin in [
            "http://localhost",
            "http://localhost:8788",
            "http://evil.example",
            "http://localhost:8787.evil.example",
            "http://evil.example/localhost:8787",
            "null",
            "localhost:8787",
            "",
        ] {
            assert!(refused(&[], &[origin], own), "{origin}");
            assert!(!refused(&["*"], &[origin], own), "{origin}");
        }
        assert!(!refused(&["https://a.example"], &["https://a.example"], own));
        assert!(
            refused(&["https://a.example"], &["http://a.example"], own),
            "another scheme is another site"
        );
        assert!(refused(&["https://a.example"], &["https://a.example", "https://b.example"], own));
    }

    #[test]
    fn without_a_list_there_is_no_layer() {
        assert!(Origins::default().layer().is_none());
        let cors_origins = vec!["https://a.example".to_owned()];
        assert!(Origins::from(&Server { cors_origins, ..Server::default() }).layer().is_some());
    }
}
