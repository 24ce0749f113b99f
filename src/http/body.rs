//! Request bodies: read whole, within their limits, before anything else happens.

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::App;
use super::problem::Problem;

/// A body as it came, at most `server.max_body_bytes`, within `server.request_timeout_ms`.
#[derive(Debug)]
pub(super) struct Body(Bytes);

impl FromRequest<App> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        // A length that is told beforehand is believed: nothing is read, and `Expect: 100-continue` is told no.
        if request.body().size_hint().lower() > app.limits.max_body_bytes as u64 {
            return Err(too_large(app));
        }
        let body = Limited::new(request.into_body(), app.limits.max_body_bytes);
        match tokio::time::timeout(app.limits.request_timeout, body.collect()).await {
            Ok(Ok(collected)) => Ok(Self(collected.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(app)),
            Ok(Err(_)) => Err(Problem::bad_request("incomplete_body", "the body did not arrive whole")),
            Err(_) => {
                let detail = "the body did not arrive in time";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail))
            }
        }
    }
}

fn too_large(app: &App) -> Problem {
    let detail = format!("a body has at most {} bytes", app.limits.max_body_bytes);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

impl Body {
    /// Whether nothing was sent, or nothing in JSON.
    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_empty() || self.0.trim_ascii() == b"null"
    }

    /// Reads a JSON object of the given shape; fields that the shape does not name are ignored. What is
    /// no JSON is `invalid_json`; JSON of another shape is the route's own `wrong_shape`.
    pub(super) fn object<'a, T: Deserialize<'a>>(
        &'a self,
        wrong_shape: fn() -> Problem,
    ) -> Result<T, Problem> {
        object_in(&self.0, "the body", wrong_shape)
    }
}

/// The same, of any bytes.
pub(super) fn object_in<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    name: &str,
    wrong_shape: fn() -> Problem,
) -> Result<T, Problem> {
    let not_json = || Problem::bad_request("invalid_json", format!("{name} is not JSON"));
    let text = std::str::from_utf8(bytes).map_err(|_| not_json())?;
    // RFC 8259 allows to overlook the mark that some clients on Windows put first; the seed does.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(Problem::bad_request("invalid_json", format!("{name} is empty; it is JSON")));
    }
    // serde would take an array for a struct, field by field.
    let is_object = text.trim_ascii_start().starts_with('{');
    match serde_json::from_str::<T>(text) {
        Ok(object) if is_object => Ok(object),
        Err(error) if !error.is_data() => Err(not_json()),
        // The shape is wrong somewhere; that the rest is JSON remains to be seen.
        _ => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Err(wrong_shape()),
            Err(_) => Err(not_json()),
        },
    }
}
