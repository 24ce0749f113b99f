//! Names and numbers as the OpenAPI document describes them.
//!
//! Only their shape is used: what is accepted is decided where they are parsed, and a fuzzer compares the
//! two in the tests. Upper bounds that are settings are filled in by [`fit`](super::openapi::fit).

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Ref, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

#[derive(Debug)]
pub(super) struct Item;
#[derive(Debug)]
pub(super) struct Items;
#[derive(Debug)]
pub(super) struct User;
#[derive(Debug)]
pub(super) struct Workshop;
#[derive(Debug)]
pub(super) struct RequestId;
#[derive(Debug)]
pub(super) struct Seats;
#[derive(Debug)]
pub(super) struct Room;
#[derive(Debug)]
pub(super) struct Member;
#[derive(Debug)]
pub(super) struct MessageId;
#[derive(Debug)]
pub(super) struct AnyJson;

impl ToSchema for Room {}
impl ToSchema for Member {}
impl ToSchema for MessageId {}
impl ToSchema for AnyJson {}
impl ToSchema for Item {}
impl ToSchema for Items {}
impl ToSchema for User {}
impl ToSchema for Workshop {}
impl ToSchema for RequestId {}
impl ToSchema for Seats {}

/// Neither `.` nor `..`, and no control character.
const FREE_NAME: &str = r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f]+$";

fn text(pattern: &str, example: &str, description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .examples([example])
        .description(Some(description))
}

impl PartialSchema for Item {
    fn schema() -> RefOr<Schema> {
        let description = "An item's name. Its UTF-8 has at most `likes.max_item_bytes` bytes, which are `maxLength` \
                           characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "post-1", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for Items {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(Ref::from_schema_name(Item::name()))
            .min_items(Some(1))
            .description(Some("Items, at most `likes.max_items_per_read`"))
            .into()
    }
}

impl PartialSchema for User {
    fn schema() -> RefOr<Schema> {
        let description = "A user's id. Its UTF-8 has at most `likes.max_user_bytes` bytes, which are `maxLength` \
                           characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "ada", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for Workshop {
    fn schema() -> RefOr<Schema> {
        text("^[a-z][a-z0-9-]{0,31}$", "launch-day", "A workshop's name")
            .min_length(Some(1))
            .max_length(Some(32))
            .into()
    }
}

impl PartialSchema for RequestId {
    fn schema() -> RefOr<Schema> {
        let description = "The caller's id of this attempt. Repeated, it gets the first answer.";
        text("^[a-z0-9][a-z0-9-]{2,47}$", "request-1", description)
            .min_length(Some(3))
            .max_length(Some(48))
            .into()
    }
}

impl PartialSchema for Seats {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .examples([1])
            .description(Some("A whole number, at most `reservations.max_seats_per_request`"))
            .into()
    }
}

impl PartialSchema for Room {
    fn schema() -> RefOr<Schema> {
        let description = "A room's name. Its UTF-8 has at most `rooms.max_room_bytes` bytes, which are `maxLength` \
                           characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "lobby", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for Member {
    fn schema() -> RefOr<Schema> {
        let description = "A user's id. Its UTF-8 has at most `rooms.max_user_bytes` bytes, which are `maxLength` \
                           characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "ada", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for MessageId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(64))
            .examples(["message-1"])
            .description(Some("The sender's id of a message: 1 to 64 characters"))
            .into()
    }
}

impl PartialSchema for AnyJson {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON")).into()
    }
}

/// A text that is one of some words.
fn word(words: &[&'static str], description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .description(Some(description))
        .build()
}

pub(super) fn healthy() -> Object {
    word(&["ok", "ready"], "`ok` of `/health`, `ready` of `/ready`")
}

pub(super) fn decision() -> Object {
    word(&["accepted", "rejected"], "The first decision")
}

pub(super) fn reason() -> Object {
    word(&["not_enough_seats"], "Why it was rejected; absent otherwise")
}

/// Every `error` that a [`Problem`](super::problem::Problem) can say.
pub(super) fn error() -> Object {
    let words = [
        "body_too_large",
        "disk_full",
        "forbidden",
        "incomplete_body",
        "invalid_handshake",
        "invalid_item",
        "invalid_json",
        "invalid_like",
        "invalid_member",
        "invalid_message",
        "invalid_query",
        "invalid_reservation",
        "invalid_room",
        "invalid_user",
        "invalid_workshop_name",
        "message_too_large",
        "method_not_allowed",
        "not_found",
        "not_ready",
        "outcome_unknown",
        "overloaded",
        "rate_limited",
        "request_id_reused",
        "request_timeout",
        "room_full",
        "too_many_connections",
        "unauthorized",
        "unavailable",
    ];
    word(&words, "One word for one cause")
}
