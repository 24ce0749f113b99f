//! What is said over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{OneOfBuilder, Ref, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Room, SeedRoom, user};
use crate::http::App;
use crate::http::auth::policy::Feature;
use crate::http::auth::{Key, Write};
use crate::http::body::Body;
use crate::http::openapi::{BodyRejections, Refusals, Rejections, TooMany};
use crate::http::problem::Problem;
use crate::http::schema;
use crate::rooms::types::{self, Message, RoomName, UserId, even_null, is_message_id};

/// A message as it comes, whichever of the two shapes of [`MessageBody`] it has.
#[derive(Debug, Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    user: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    text: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    id: Option<&'a RawValue>,
}

/// A message: either a text or data. Other fields are ignored.
#[derive(Debug)]
pub(in crate::http) struct MessageBody;

impl ToSchema for MessageBody {}

impl PartialSchema for MessageBody {
    fn schema() -> RefOr<Schema> {
        let [text, data] = [TextMessage::name(), DataMessage::name()].map(Ref::from_schema_name);
        let description = "A message: either a text or data. Other fields are ignored.";
        OneOfBuilder::new().item(text).item(data).description(Some(description)).into()
    }
}

/// A message that is a text.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(in crate::http) struct TextMessage {
    user: schema::Member,
    /// At most `rooms.max_message_bytes`.
    text: String,
    /// The sender's id of it: repeated while the history holds the message, it is said once.
    #[schema(required = false)]
    id: schema::MessageId,
}

/// A message that is JSON of the application's own.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(in crate::http) struct DataMessage {
    user: schema::Member,
    /// At most `rooms.max_message_bytes` as it was sent.
    data: schema::AnyJson,
    /// The sender's id of it: repeated while the history holds the message, it is said once.
    #[schema(required = false)]
    id: schema::MessageId,
}

fn invalid(field: &'static str, detail: impl Into<String>) -> Problem {
    Problem::bad_request("invalid_message", detail).of_field(field)
}

impl Said<'_> {
    fn parse(body: &Body, app: &App) -> Result<Message, Problem> {
        let wrong_shape = || invalid("user", "a message is an object with `user`, and `text` or `data`");
        let said: Said<'_> = body.object(wrong_shape)?;
        let text = |json: &RawValue| serde_json::from_str::<String>(json.get()).ok();
        let sender = said.user.and_then(text).ok_or_else(wrong_shape)?;
        let body = match (said.text, said.data) {
            (Some(json), None) => {
                let text = text(json).ok_or_else(|| invalid("text", "`text` is a text"))?;
                types::Body::Text(text.into())
            }
            (None, Some(data)) => types::Body::Data(data.get().into()),
            _ => return Err(invalid("text", "a message has either `text` or `data`")),
        };
        let max = app.limits.max_message_bytes;
        if body.len() > max {
            let detail = format!("a message has at most {max} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "message_too_large", detail));
        }
        let id = said.id.map(|json| {
            let id = text(json).filter(|id| is_message_id(id));
            id.ok_or_else(|| invalid("id", "`id` is a text of 1 to 64 characters"))
        });
        let id = id.transpose()?.map(Arc::from);
        Ok(Message { user: Some(user(&sender, app)?), body, id })
    }
}

/// What was said.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct SentAnswer {
    #[schema(value_type = schema::Room)]
    room: String,
    /// Users online.
    #[schema(minimum = 0)]
    online: usize,
    /// Of which stream the offset is.
    epoch: String,
    /// The message's number.
    #[schema(minimum = 1)]
    offset: u64,
    /// Whether it had been said before, under the same id.
    replayed: bool,
}

/// Say something to everyone who listens. Counts as activity of a member; makes nobody one.
#[utoipa::path(post, path = "/rooms/{room}/send", operation_id = "send_to_room", tag = "rooms",
    params(("room" = schema::Room, Path)),
    request_body = MessageBody,
    responses((status = 200, body = SentAnswer, description = "it is said"),
        Rejections, TooMany, Refusals, BodyRejections))]
pub(in crate::http) async fn send(
    key: Key<Write>,
    State(app): State<App>,
    Room(room): Room,
    body: Body,
) -> Result<Json<SentAnswer>, Problem> {
    say(&app, &room, &body, &key).await
}

/// Say something, as the seed has it.
#[utoipa::path(post, path = "/send", tag = "rooms",
    params(("room" = Option<schema::Room>, Query, description = "`lobby` without it")),
    request_body = MessageBody,
    responses((status = 200, body = SentAnswer, description = "it is said"),
        Rejections, TooMany, Refusals, BodyRejections))]
pub(in crate::http) async fn seed_send(
    key: Key<Write>,
    State(app): State<App>,
    SeedRoom(room): SeedRoom,
    body: Body,
) -> Result<Json<SentAnswer>, Problem> {
    say(&app, &room, &body, &key).await
}

async fn say(app: &App, room: &RoomName, body: &Body, key: &Key<Write>) -> Result<Json<SentAnswer>, Problem> {
    let message = Said::parse(body, app)?;
    key.permit.is(message.user.as_ref().map_or("", UserId::as_str), "user")?;
    key.permit.reaches(Feature::Rooms, room.as_str())?;
    let sent =
        app.rooms.say(room, message, key.name.as_deref()).await.map_err(|denied| app.denied(denied))?;
    Ok(Json(SentAnswer {
        room: room.as_str().to_owned(),
        online: sent.online,
        epoch: (*sent.position.epoch).to_owned(),
        offset: sent.position.offset,
        replayed: sent.replayed,
    }))
}
