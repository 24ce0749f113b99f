//! Who is here: join, leave, look.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Room, SeedRoom, user};
use crate::http::App;
use crate::http::auth::policy::Feature;
use crate::http::auth::{Permit, Read, Write};
use crate::http::body::Body;
use crate::http::openapi::{BodyRejections, Refusals, Rejections, TooMany};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::schema;
use crate::rooms::types::{Meta, RoomName, UserId, even_null};

/// Who joins or leaves. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::http) struct MemberBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Member, required)]
    user: Option<&'a RawValue>,
    /// What the member says about itself, any JSON of at most `rooms.max_meta_bytes`. Of a join alone.
    #[serde(borrow, default, deserialize_with = "even_null")]
    #[schema(value_type = schema::AnyJson, required = false)]
    meta: Option<&'a RawValue>,
}

impl MemberBody<'_> {
    fn parse(body: &Body, app: &App) -> Result<(UserId, Option<Meta>), Problem> {
        let invalid = || {
            Problem::bad_request("invalid_member", "a member is an object with the text `user`")
                .of_field("user")
        };
        let member: MemberBody<'_> = body.object(invalid)?;
        let text = member.user.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let user = user(&text.ok_or_else(invalid)?, app)?;
        let max = app.limits.max_meta_bytes;
        match member.meta.map(RawValue::get) {
            Some(meta) if meta.len() > max => {
                let detail = format!("`meta` has at most {max} bytes");
                Err(Problem::bad_request("invalid_member", detail).of_field("meta"))
            }
            meta => Ok((user, meta.map(|meta| Meta(meta.into())))),
        }
    }
}

/// A room after a join or a leave.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemberAnswer {
    #[schema(value_type = schema::Room)]
    room: String,
    #[schema(value_type = schema::Member)]
    user: String,
    /// Users online now.
    #[schema(minimum = 0)]
    online: usize,
}

/// A room as it is.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RoomAnswer {
    #[schema(value_type = schema::Room)]
    room: String,
    /// Users online.
    #[schema(minimum = 0)]
    online: usize,
    /// Sockets and readers of events.
    #[schema(minimum = 0)]
    connections: usize,
    /// With `?members=true`: everyone online, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<MemberView>, required = false)]
    members: Option<Box<RawValue>>,
}

/// Somebody online.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(in crate::http) struct MemberView {
    #[schema(value_type = schema::Member)]
    user: String,
    /// What it says about itself.
    #[schema(value_type = schema::AnyJson, required = false)]
    meta: String,
}

/// Join a room: one session, ended by a leave or by `rooms.idle_timeout_ms` without activity. Idempotent.
#[utoipa::path(post, path = "/rooms/{room}/join", operation_id = "join_room", tag = "rooms",
    params(("room" = schema::Room, Path)),
    request_body = MemberBody,
    responses((status = 200, body = MemberAnswer, description = "the user is online"),
        Rejections, TooMany, Refusals, BodyRejections))]
pub(in crate::http) async fn join(
    permit: Permit<Write>,
    State(app): State<App>,
    Room(room): Room,
    body: Body,
) -> Result<Json<MemberAnswer>, Problem> {
    join_room(&app, &permit, room, &body).await
}

/// Join a room, as the seed has it.
#[utoipa::path(post, path = "/join", tag = "rooms",
    params(("room" = Option<schema::Room>, Query, description = "`lobby` without it")),
    request_body = MemberBody,
    responses((status = 200, body = MemberAnswer, description = "the user is online"),
        Rejections, TooMany, Refusals, BodyRejections))]
pub(in crate::http) async fn seed_join(
    permit: Permit<Write>,
    State(app): State<App>,
    SeedRoom(room): SeedRoom,
    body: Body,
) -> Result<Json<MemberAnswer>, Problem> {
    join_room(&app, &permit, room, &body).await
}

/// Leave a room: ends the session. The user's sockets stay, unless `all=true`. Idempotent.
#[utoipa::path(post, path = "/rooms/{room}/leave", operation_id = "leave_room", tag = "rooms",
    params(("room" = schema::Room, Path),
        ("all" = Option<bool>, Query, description = "closes the user's sockets too")),
    request_body = MemberBody,
    responses((status = 200, body = MemberAnswer, description = "the session is over"),
        Rejections, Refusals, BodyRejections))]
pub(in crate::http) async fn leave(
    permit: Permit<Write>,
    State(app): State<App>,
    Room(room): Room,
    uri: Uri,
    body: Body,
) -> Result<Json<MemberAnswer>, Problem> {
    leave_room(&app, &permit, room, &uri, &body).await
}

/// Leave a room, as the seed has it.
#[utoipa::path(post, path = "/leave", tag = "rooms",
    params(("room" = Option<schema::Room>, Query, description = "`lobby` without it"),
        ("all" = Option<bool>, Query, description = "closes the user's sockets too")),
    request_body = MemberBody,
    responses((status = 200, body = MemberAnswer, description = "the session is over"),
        Rejections, Refusals, BodyRejections))]
pub(in crate::http) async fn seed_leave(
    permit: Permit<Write>,
    State(app): State<App>,
    SeedRoom(room): SeedRoom,
    uri: Uri,
    body: Body,
) -> Result<Json<MemberAnswer>, Problem> {
    leave_room(&app, &permit, room, &uri, &body).await
}

/// Who is in a room. One that nobody is in is empty, and nothing is made.
#[utoipa::path(get, path = "/rooms/{room}", operation_id = "show_room", tag = "rooms",
    params(("room" = schema::Room, Path),
        ("members" = Option<bool>, Query, description = "adds everyone online")),
    responses((status = 200, body = RoomAnswer, description = "the room as it is"),
        Rejections, Refusals))]
pub(in crate::http) async fn look(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<RoomAnswer>, Problem> {
    let room = super::room(&uri, &app)?;
    let members = Query::parse(uri.query())?.flag("members")?;
    let view = app.rooms.view(&room, members).await.map_err(|denied| app.denied(denied))?;
    let (online, connections, members) = (view.online, view.connections, view.members);
    Ok(Json(RoomAnswer { room: room.as_str().to_owned(), online, connections, members }))
}

async fn join_room(
    app: &App,
    permit: &Permit<Write>,
    room: RoomName,
    body: &Body,
) -> Result<Json<MemberAnswer>, Problem> {
    let (user, meta) = MemberBody::parse(body, app)?;
    permit.is(user.as_str(), "user")?;
    permit.reaches(Feature::Rooms, room.as_str())?;
    let joined = app.rooms.join(&room, user.clone(), meta).await;
    Ok(member(&room, &user, joined.map_err(|denied| app.denied(denied))?))
}

async fn leave_room(
    app: &App,
    permit: &Permit<Write>,
    room: RoomName,
    uri: &Uri,
    body: &Body,
) -> Result<Json<MemberAnswer>, Problem> {
    let all = Query::parse(uri.query())?.flag("all")?;
    let (user, _) = MemberBody::parse(body, app)?;
    permit.is(user.as_str(), "user")?;
    permit.reaches(Feature::Rooms, room.as_str())?;
    let left = app.rooms.leave(&room, user.clone(), all).await;
    Ok(member(&room, &user, left.map_err(|denied| app.denied(denied))?))
}

fn member(room: &RoomName, user: &UserId, online: usize) -> Json<MemberAnswer> {
    Json(MemberAnswer { room: room.as_str().to_owned(), user: user.as_str().to_owned(), online })
}
