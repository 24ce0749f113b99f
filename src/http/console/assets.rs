//! The page itself: in the binary, as it is written, with nothing to build and nothing from anywhere else.
//!
//! Anybody who reaches the admin listener gets it, without a key: it holds no data, and what it asks for is asked with one.

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::http::problem::Problem;

const INDEX: &str = include_str!("page/index.html");

/// Every other file, by its name.
const FILES: [(&str, &str, &str); 12] = [
    ("console.css", CSS, include_str!("page/console.css")),
    ("tables.css", CSS, include_str!("page/tables.css")),
    ("main.js", JS, include_str!("page/main.js")),
    ("api.js", JS, include_str!("page/api.js")),
    ("dom.js", JS, include_str!("page/dom.js")),
    ("format.js", JS, include_str!("page/format.js")),
    ("charts.js", JS, include_str!("page/charts.js")),
    ("panels.js", JS, include_str!("page/panels.js")),
    ("lists.js", JS, include_str!("page/lists.js")),
    ("workshop.js", JS, include_str!("page/workshop.js")),
    ("dialogs.js", JS, include_str!("page/dialogs.js")),
    ("theme.js", JS, include_str!("page/theme.js")),
];

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Nothing from elsewhere, nothing inline, no frame around it; and no text becomes markup, whatever an item is called:
/// with trusted types and no policy that makes any, the browser refuses `innerHTML` altogether.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

pub(super) async fn index() -> Response {
    answer(HTML, INDEX)
}

pub(super) async fn file(Path(name): Path<String>) -> Result<Response, Problem> {
    let file = FILES.iter().find(|(known, ..)| *known == name);
    let &(_, kind, text) = file.ok_or_else(Problem::not_found)?;
    Ok(answer(kind, text))
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 6] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // Another version of the binary has other files.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}
