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
    /// Lets a WebSocket's handshake go on that no page of a foreign site asks for. Who is no browser sends no `Origin`; of
    /// a page of this service it is [same](is_same).
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

/// Whether a page is of the very origin that the request went to: its host and port are those of `Host`, and its scheme
/// is no worse. What ends TLS before this service may tell the scheme in `X-Forwarded-Proto`, which no page can set; it is
/// believed where it shuts a page out that came over plain HTTP, and never to let one in. Where nobody tells, either will do.
fn is_same(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_behind_tls = text(HeaderName::from_static("x-forwarded-proto"))
        .and_then(|schemes| schemes.split(',').next())
        .is_some_and(|scheme| matches!(scheme.trim().to_ascii_lowercase().as_str(), "https" | "wss"));
    // An origin leaves its scheme's own port out; a proxy may have put it into `Host`.
    let (authority, own_port) = match origin.to_str().ok().and_then(|origin| origin.split_once("://")) {
        Some(("https", authority)) => (authority, ":443"),
        Some(("http", authority)) if !is_behind_tls => (authority, ":80"),
        _ => return false,
    };
    let host = text(header::HOST).map(|host| host.strip_suffix(own_port).unwrap_or(host));
    host.is_some_and(|host| !host.is_empty() && authority.eq_ignore_ascii_case(host))
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
    fn a_scheme_counts_where_a_proxy_tells_it() {
        let is_own = |origin: &str, host: &str, scheme: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if !scheme.is_empty() {
                headers.insert("x-forwarded-proto", scheme.parse().unwrap());
            }
            is_same(&origin.parse().unwrap(), &headers)
        };
        let (secure, plain) = ("https://a.example", "http://a.example");
        for tls in ["https", "wss", "HTTPS", "https, http"] {
            assert!(is_own(secure, "a.example", tls) && !is_own(plain, "a.example", tls), "{tls}");
        }
        for untold in ["", "http", "http, https", "?"] {
            assert!(is_own(secure, "a.example", untold) && is_own(plain, "a.example", untold), "{untold}");
        }
        assert!(is_own(secure, "a.example:443", "") && is_own(plain, "a.example:80", ""));
        assert!(!is_own(secure, "a.example:80", "") && !is_own(plain, "a.example:443", ""));
        assert!(!is_own("ftp://a.example", "a.example", "") && !is_own("https://", "", "https"));
        assert!(is_own("http://[::1]:8787", "[::1]:8787", "") && !is_own("http://[::1]", "[::1]:8787", ""));
    }

    #[test]
    fn without_a_list_there_is_no_layer() {
        assert!(Origins::default().layer().is_none());
        let cors_origins = vec!["https://a.example".to_owned()];
        assert!(Origins::from(&Server { cors_origins, ..Server::default() }).layer().is_some());
    }
}
