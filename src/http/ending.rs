//! Streams with an end: one that was opened with a token lives no longer than that.

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;

/// A body that ends after this long, where it is not `None`. Whoever reads it comes back with a new token.
pub(super) fn for_as_long(body: Body, life: Option<Duration>) -> Body {
    match life {
        None => body,
        Some(life) => Body::from_stream(body.into_data_stream().take_until(tokio::time::sleep(life))),
    }
}
