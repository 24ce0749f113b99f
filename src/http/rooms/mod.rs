//! The routes of rooms: [`members`] join, leave and are looked at, [`messages`] are sent, [`socket`] and
//! [`events`] listen to what is [`told`].

pub(super) mod events;
pub(super) mod members;
pub(super) mod messages;
pub(super) mod socket;
pub(super) mod told;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};

use super::App;
use super::path::segment;
use super::problem::Problem;
use super::query::Query;
use crate::rooms::denied::Denied;
use crate::rooms::frame::Mode;
use crate::rooms::link::Wishes;
use crate::rooms::types::{Position, RoomName, UserId};

/// The room of a path. As an argument of a handler it is looked at before the body is.
#[derive(Debug)]
pub(super) struct Room(pub(super) RoomName);

/// The room of the seed's query, `lobby` without one.
#[derive(Debug)]
pub(super) struct SeedRoom(pub(super) RoomName);

impl FromRequestParts<App> for Room {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        room(&parts.uri, app).map(Self)
    }
}

impl FromRequestParts<App> for SeedRoom {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let query = Query::parse(parts.uri.query())?;
        let name = query.one("room")?.unwrap_or("lobby");
        RoomName::parse(name, app.limits.max_room_bytes).map(Self).ok_or_else(|| invalid_room(app))
    }
}

fn room(uri: &Uri, app: &App) -> Result<RoomName, Problem> {
    let room = segment(uri, 1)?.and_then(|room| RoomName::parse(&room, app.limits.max_room_bytes));
    room.ok_or_else(|| invalid_room(app))
}

fn invalid_room(app: &App) -> Problem {
    let max = app.limits.max_room_bytes;
    let detail = format!("a room is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`");
    Problem::bad_request("invalid_room", detail)
}

fn user(text: &str, app: &App) -> Result<UserId, Problem> {
    let max = app.limits.max_member_bytes;
    UserId::parse(text, max).ok_or_else(|| {
        let detail =
            format!("a user is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`");
        Problem::bad_request("invalid_user", detail).of_field("user")
    })
}

/// What a listener asks for in its query, and where it left off.
fn listener(query: &Query<'_>, socket: bool) -> Result<(Wishes, Option<Position>), Problem> {
    let on_unless_told = |name| Ok::<bool, Problem>(query.one(name)?.is_none() || query.flag(name)?);
    let mode = match (socket, query.flag("raw")?) {
        (true, false) => Mode::Socket,
        (true, true) => Mode::RawSocket,
        (false, false) => Mode::Events,
        (false, true) => Mode::RawEvents,
    };
    let wishes = Wishes { mode, echo: on_unless_told("echo")?, presence: on_unless_told("presence")? };
    Ok((wishes, query.one("since")?.map(since).transpose()?))
}

fn since(text: &str) -> Result<Position, Problem> {
    Position::parse(text).ok_or_else(|| {
        Problem::bad_request("invalid_query", "a position is `epoch:offset`, as a frame told it")
            .of_field("since")
    })
}

impl App {
    /// What a room's refusal is to a client.
    fn denied(&self, denied: Denied) -> Problem {
        let too_many = |detail: &str| {
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, denied.word(), detail);
            problem.retry_after(u64::from(self.limits.retry_after_s))
        };
        match denied {
            Denied::RoomFull => too_many("the room has its full number of members"),
            Denied::TooManyConnections(limit) => too_many(&format!("no more connections: see {limit}")),
            Denied::RateLimited(limit) => too_many(&format!("too many messages a second: see {limit}")),
            // Everyone who was dropped at once comes back at once: each is told a time of its own.
            Denied::NotAdmitted => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                denied.word(),
                "too many connections are coming at once; come back after Retry-After",
            )
            .retry_after(self.rooms.retry_ms(self.clock.now_ms().unsigned_abs()).div_ceil(1_000).max(1)),
            Denied::Refused(refusal) => refusal.into(),
        }
    }
}
