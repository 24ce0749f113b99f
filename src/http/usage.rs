//! What each namespace has cost since the start, for whoever pays for it. On the admin listener.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::App;
use super::auth::{Permit, Read};
use crate::usage::{Meter, Namespace};

/// See the module. Counters begin at 0 at `since` and never fall.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageAnswer {
    /// When the counters began: the start of the process, ms since 1970.
    since: i64,
    /// Now, ms since 1970.
    now: i64,
    likes: NamespaceAnswer,
    workshops: NamespaceAnswer,
    rooms: RoomsAnswer,
    /// Absent while nothing could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<StoredAnswer>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NamespaceAnswer {
    /// Requests answered, whatever the answer.
    requests: u64,
    /// Time in memory, all actors added up.
    active_seconds: f64,
    /// Messages from WebSockets.
    inbound_messages: u64,
    /// Bytes of its tables and indices.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomsAnswer {
    #[serde(flatten)]
    namespace: NamespaceAnswer,
    /// Time asleep, all rooms added up: what sleeping saves.
    asleep_seconds: f64,
    /// Of the inbound messages: keep-alives, which wake no room.
    keep_alives: u64,
}

/// About the bytes stored.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredAnswer {
    /// When they were measured, ms since 1970.
    as_of: i64,
    age_ms: i64,
    /// Nobody's: free pages, write-ahead logs, what the files say about themselves.
    shared_bytes: u64,
}

/// Waits for the first measurement of the bytes stored, and for no later one.
pub(super) async fn usage(_permit: Permit<Read>, State(app): State<App>) -> Json<UsageAnswer> {
    let patience = app.limits.request_timeout;
    let stored = tokio::time::timeout(patience, app.stored.first()).await.unwrap_or_default();
    let now = app.clock.now_ms();
    let of = |namespace| NamespaceAnswer {
        stored_bytes: stored.map(|stored| stored.of(namespace)),
        ..read(app.usage.of(namespace))
    };
    let rooms = app.usage.rooms.read();
    Json(UsageAnswer {
        since: app.usage.since_ms,
        now,
        likes: of(Namespace::Likes),
        workshops: of(Namespace::Workshops),
        rooms: RoomsAnswer {
            namespace: of(Namespace::Rooms),
            asleep_seconds: seconds(rooms.asleep_ms),
            keep_alives: rooms.keepalives,
        },
        stored: stored.map(|stored| StoredAnswer {
            as_of: stored.as_of_ms,
            age_ms: now.saturating_sub(stored.as_of_ms),
            shared_bytes: stored.shared,
        }),
    })
}

fn read(meter: &Meter) -> NamespaceAnswer {
    let reading = meter.read();
    NamespaceAnswer {
        requests: reading.requests,
        active_seconds: seconds(reading.active_ms),
        inbound_messages: reading.messages,
        stored_bytes: None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
