//! What a browser loads from here: the like button, and a page that shows it. For everybody: nothing in it is secret.

use axum::Router;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

use super::App;

const WIDGET: &str = include_str!("web/widget.js");
const DEMO: &str = include_str!("web/demo.html");

/// An hour without a question, and a day in which an old one does while the new one is fetched.
const CACHE: &str = "public, max-age=3600, stale-while-revalidate=86400";
/// The demo's page loads and asks this service alone.
const DEMO_MAY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'";

/// `GET /widget.js`, and `GET /demo` with `server.demo`.
pub(super) fn routes(demo: bool) -> Router<App> {
    let etag = etag(WIDGET);
    let router = Router::new()
        .route("/widget.js", get(move |headers: HeaderMap| async move { widget(&headers, &etag) }));
    match demo {
        true => router.route("/demo", get(page)),
        false => router,
    }
}

/// It changes with the text and with nothing else.
fn etag(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

fn widget(asked: &HeaderMap, etag: &str) -> Response {
    let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let is_known = known.flat_map(|tags| tags.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    });
    let headers = [
        (header::CACHE_CONTROL, CACHE),
        (header::ETAG, etag),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Pages that are isolated load it too.
        (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => {
            let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
            (headers, kind, WIDGET).into_response()
        }
    }
}

/// The command on it names the address that the page was asked at.
async fn page(asked: HeaderMap) -> impl IntoResponse {
    let host = asked.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_address = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]".contains(c));
    let page = DEMO.replace("127.0.0.1:8787", host.filter(is_address).unwrap_or("127.0.0.1:8787"));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, DEMO_MAY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, page)
}
