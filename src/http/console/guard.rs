//! Whom a browser may act for, where there are no keys.
//!
//! With keys nothing is done for a request without one, and a browser sends none by itself. Without keys the service is
//! open to whoever reaches it, which is this machine alone; but the operator's browser is on this machine, too, and pages
//! from elsewhere run in it. Two ways lead from such a page to here, and each has its lock:
//!
//! - **A foreign name.** A page whose own name is made to resolve to 127.0.0.1 (DNS rebinding) is of one origin with this
//!   listener, to the browser. But its requests still carry that name in `Host`. So the host must be an address (which
//!   no name server can give away), or `localhost`.
//! - **A foreign page.** Any page may send simple requests anywhere (CSRF), without reading the answers. Browsers say
//!   where a request comes from (`Sec-Fetch-Site`, `Origin`); one from another origin is refused. And what changes something
//!   has to say `content-type: application/json` or `x-headcount-console`: a foreign page cannot say either without
//!   asking first (a CORS preflight), which nobody here answers with yes. So an old browser that tells no origin does not
//!   get through, either.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::App;
use crate::http::problem::Problem;

/// What the page sends along with everything it asks.
const FROM_THE_PAGE: &str = "x-headcount-console";

pub(super) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.keys.is_empty()
        && let Err(problem) = check(request.method(), request.headers())
    {
        return problem.into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn check(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text("host").unwrap_or_default();
    if !is_here(host) {
        let detail =
            "without keys, the admin listener answers under an address or localhost, and under no other name";
        return Err(Problem::new(StatusCode::FORBIDDEN, "foreign_host", detail));
    }
    let site = text("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site));
    let origin =
        text("origin").is_none_or(|origin| origin.split_once("://").is_some_and(|(_, of)| of == host));
    if !site || !origin {
        let detail = "another page sent this; without keys, only the operator's page may";
        return Err(Problem::new(StatusCode::FORBIDDEN, "foreign_page", detail));
    }
    let is_json = text("content-type").is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    });
    if ![Method::GET, Method::HEAD].contains(method) && !is_json && !headers.contains_key(FROM_THE_PAGE) {
        let detail = "without keys, what changes something says `content-type: application/json` or \
                      `x-headcount-console: 1`, which a foreign page cannot";
        return Err(Problem::new(StatusCode::FORBIDDEN, "foreign_page", detail));
    }
    Ok(())
}

/// Whether a `Host` is an address, or this machine's own name for itself.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: Method, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| {
            map.insert(*name, HeaderValue::from_static(value));
        });
        check(&method, &map).is_err()
    }

    #[test]
    fn a_host_is_an_address_or_localhost() {
        for here in
            ["127.0.0.1:8788", "127.0.0.1", "[::1]:8788", "[::1]", "localhost:1", "LocalHost", "10.0.0.7:80"]
        {
            assert!(is_here(here), "{here}");
        }
        for foreign in [
            "",
            "evil.example",
            "evil.example:8788",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8788",
            "[evil]",
            "::",
        ] {
            assert!(!is_here(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_foreign_page_changes_and_reads_nothing() {
        let here = ("host", "127.0.0.1:8788");
        assert!(!refused(Method::GET, &[here]), "no browser");
        assert!(!refused(Method::GET, &[here, ("sec-fetch-site", "same-origin")]));
        assert!(!refused(Method::POST, &[here, ("content-type", "application/json; charset=utf-8")]));
        let own = [here, ("origin", "http://127.0.0.1:8788"), ("x-headcount-console", "1")];
        assert!(!refused(Method::DELETE, &own));
        assert!(refused(Method::POST, &[here]), "any form can");
        assert!(refused(Method::POST, &[here, ("content-type", "text/plain")]));
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:9999"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(refused(Method::GET, &[here, foreign]), "{foreign:?}");
            assert!(
                refused(Method::POST, &[here, foreign, ("content-type", "application/json")]),
                "{foreign:?}"
            );
        }
        assert!(refused(Method::GET, &[("host", "evil.example:8788"), ("sec-fetch-site", "same-origin")]));
    }
}
