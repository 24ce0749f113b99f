//! What a room tells those who listen, as the OpenAPI document describes it. Only shapes are here: frames are made in
//! `rooms/frame.rs`, and a test compares the two.

#![expect(dead_code, reason = "documentation: only its shape is used")]

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, OneOfBuilder, Ref, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::schema::{self, word};

/// One thing told: the `data` of an event, and a frame of a socket.
#[derive(Debug)]
pub(in crate::http) struct RoomEvent;

impl ToSchema for RoomEvent {}

impl PartialSchema for RoomEvent {
    fn schema() -> RefOr<Schema> {
        let kinds = [RoomPresence::name(), RoomMessage::name(), RoomMember::name(), RoomUpdate::name()];
        let one_of = kinds
            .into_iter()
            .fold(OneOfBuilder::new(), |one_of, kind| one_of.item(Ref::from_schema_name(kind)));
        one_of.description(Some("What a room tells those who listen: `type` says which")).into()
    }
}

fn presence() -> Object {
    word(&["presence"], "Who is here: the first of all")
}

fn message() -> Object {
    word(&["message"], "Somebody said something")
}

fn came_or_went() -> Object {
    word(&["join", "leave"], "A user came, or went")
}

fn update() -> Object {
    word(&["update"], "What a member says about itself is something else now")
}

/// Who is here: the first that a listener is told.
#[derive(Debug, ToSchema)]
pub(in crate::http) struct RoomPresence {
    #[schema(schema_with = presence)]
    r#type: (),
    /// Of which stream the offset is.
    epoch: String,
    /// The number of the last message; where `recovered` is true, of the one that the listener left off at.
    offset: u64,
    room: schema::Room,
    /// Users online.
    #[schema(minimum = 0)]
    online: usize,
    /// Connections.
    #[schema(minimum = 0)]
    connections: usize,
    /// Who is online; absent with `presence=false`.
    #[schema(required = false)]
    members: Vec<super::members::MemberView>,
    /// Where `since` was given: whether all that was missed follows.
    #[schema(required = false)]
    recovered: bool,
}

/// Somebody said something: `text`, or `data`.
#[derive(Debug, ToSchema)]
pub(in crate::http) struct RoomMessage {
    #[schema(schema_with = message)]
    r#type: (),
    /// Of which stream the offset is.
    epoch: String,
    /// The message's number.
    #[schema(minimum = 1)]
    offset: u64,
    /// Who said it; absent where nobody is known, or the person was forgotten.
    #[schema(required = false)]
    user: schema::Member,
    #[schema(required = false)]
    text: String,
    #[schema(required = false)]
    data: schema::AnyJson,
    /// The sender's id of it.
    #[schema(required = false)]
    id: schema::MessageId,
    at: schema::Time,
}

/// A user came, or went.
#[derive(Debug, ToSchema)]
pub(in crate::http) struct RoomMember {
    #[schema(schema_with = came_or_went)]
    r#type: (),
    /// Of which stream the offset is.
    epoch: String,
    /// The number of the last message.
    offset: u64,
    user: schema::Member,
    /// What a member says about itself.
    #[schema(required = false)]
    meta: schema::AnyJson,
    /// Users online, this one counted if it came.
    #[schema(minimum = 0)]
    online: usize,
}

/// What a member says about itself is something else now.
#[derive(Debug, ToSchema)]
pub(in crate::http) struct RoomUpdate {
    #[schema(schema_with = update)]
    r#type: (),
    /// Of which stream the offset is.
    epoch: String,
    /// The number of the last message.
    offset: u64,
    user: schema::Member,
    /// Absent where it says nothing any more.
    #[schema(required = false)]
    meta: schema::AnyJson,
}
