//! Names and numbers as the OpenAPI document describes them.
//!
//! Only their shape is used: what is accepted is decided where they are parsed, and a fuzzer compares the
//! two in the tests. Upper bounds that are settings are filled in by [`fit`](super::openapi::fit).

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, Ref, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::store::bookings::{self, State};
use crate::store::history;

#[derive(Debug)]
pub(super) struct Item;
#[derive(Debug)]
pub(super) struct Items;
#[derive(Debug)]
pub(super) struct QueryItems;
#[derive(Debug)]
pub(super) struct User;
#[derive(Debug)]
pub(super) struct Counter;
#[derive(Debug)]
pub(super) struct Amount;
#[derive(Debug)]
pub(super) struct Workshop;
#[derive(Debug)]
pub(super) struct RequestId;
#[derive(Debug)]
pub(super) struct Seats;
#[derive(Debug)]
pub(super) struct Lines;
#[derive(Debug)]
pub(super) struct Capacity;
#[derive(Debug)]
pub(super) struct TtlMs;
#[derive(Debug)]
pub(super) struct OfferTtlMs;
#[derive(Debug)]
pub(super) struct Holder;
#[derive(Debug)]
pub(super) struct Time;
#[derive(Debug)]
pub(super) struct Policy;
#[derive(Debug)]
pub(super) struct WaitlistLength;
#[derive(Debug)]
pub(super) struct BookingState;
#[derive(Debug)]
pub(super) struct Decision;
#[derive(Debug)]
pub(super) struct Reason;
#[derive(Debug)]
pub(super) struct PageLimit;
#[derive(Debug)]
pub(super) struct LikesPageLimit;
#[derive(Debug)]
pub(super) struct LikesCursor;
#[derive(Debug)]
pub(super) struct Person;
#[derive(Debug)]
pub(super) struct ForgetPolicy;
#[derive(Debug)]
pub(super) struct From;
#[derive(Debug)]
pub(super) struct EventId;
#[derive(Debug)]
pub(super) struct Room;
#[derive(Debug)]
pub(super) struct Member;
#[derive(Debug)]
pub(super) struct MessageId;
#[derive(Debug)]
pub(super) struct Position;
#[derive(Debug)]
pub(super) struct AnyJson;
#[derive(Debug)]
pub(super) struct Step;
#[derive(Debug)]
pub(super) struct Window;
#[derive(Debug)]
pub(super) struct TrendingLimit;

impl ToSchema for Room {}
impl ToSchema for Member {}
impl ToSchema for MessageId {}
impl ToSchema for Position {}
impl ToSchema for AnyJson {}
impl ToSchema for Step {}
impl ToSchema for Window {}
impl ToSchema for TrendingLimit {}
impl ToSchema for Item {}
impl ToSchema for Items {}
impl ToSchema for QueryItems {}
impl ToSchema for Counter {}
impl ToSchema for Amount {}
impl ToSchema for User {}
impl ToSchema for Workshop {}
impl ToSchema for RequestId {}
impl ToSchema for Seats {}
impl ToSchema for Lines {}
impl ToSchema for Capacity {}
impl ToSchema for TtlMs {}
impl ToSchema for OfferTtlMs {}
impl ToSchema for Holder {}
impl ToSchema for Time {}
impl ToSchema for Policy {}
impl ToSchema for WaitlistLength {}
impl ToSchema for BookingState {}
impl ToSchema for Decision {}
impl ToSchema for Reason {}
impl ToSchema for PageLimit {}
impl ToSchema for LikesPageLimit {}
impl ToSchema for LikesCursor {}
impl ToSchema for Person {}
impl ToSchema for ForgetPolicy {}
impl ToSchema for From {}
impl ToSchema for EventId {}

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

impl PartialSchema for QueryItems {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(Ref::from_schema_name(Item::name()))
            .min_items(Some(1))
            .description(Some("Items, at most `likes.max_items_per_query`"))
            .into()
    }
}

impl PartialSchema for Counter {
    fn schema() -> RefOr<Schema> {
        let description = "A counter's name. Its UTF-8 has at most `likes.max_item_bytes` bytes, which are `maxLength` \
                           characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "views", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(isize::MIN))
            .maximum(Some(isize::MAX))
            .examples([1])
            .description(Some("How much; negative: how much less. A whole number of 64 bits"))
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

impl PartialSchema for Lines {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new()
            .items(Ref::from_schema_name(super::sets::LineBody::name()))
            .min_items(Some(1))
            .description(Some("At most `reservations.max_lines_per_set`. Lines on one workshop are summed."))
            .into()
    }
}

fn number(minimum: usize, example: i64, description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(minimum))
        .examples([example])
        .description(Some(description))
}

impl PartialSchema for Capacity {
    fn schema() -> RefOr<Schema> {
        number(0, 100, "A number of seats, at most `reservations.max_capacity`").into()
    }
}

impl PartialSchema for TtlMs {
    fn schema() -> RefOr<Schema> {
        number(1, 60_000, "Milliseconds, at most `reservations.max_hold_ms`").into()
    }
}

impl PartialSchema for OfferTtlMs {
    fn schema() -> RefOr<Schema> {
        number(1, 3_600_000, "Milliseconds, at most `reservations.max_offer_ms`").into()
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let description = "Milliseconds since 1970";
        number(0, 1_900_000_000_000, description).maximum(Some(4_000_000_000_000_000_usize)).into()
    }
}

impl PartialSchema for WaitlistLength {
    fn schema() -> RefOr<Schema> {
        number(0, 100, "A number of requests, at most `reservations.max_waitlist`").into()
    }
}

impl PartialSchema for PageLimit {
    fn schema() -> RefOr<Schema> {
        number(1, 50, "A number of entries, at most `reservations.max_page`").into()
    }
}

impl PartialSchema for TrendingLimit {
    fn schema() -> RefOr<Schema> {
        number(1, 10, "A number of items, at most `likes.max_trending`").into()
    }
}

impl PartialSchema for Step {
    fn schema() -> RefOr<Schema> {
        step().into()
    }
}

impl PartialSchema for Window {
    fn schema() -> RefOr<Schema> {
        window().into()
    }
}

impl PartialSchema for LikesPageLimit {
    fn schema() -> RefOr<Schema> {
        number(1, 50, "A number of entries, at most `likes.max_page`").into()
    }
}

impl PartialSchema for LikesCursor {
    fn schema() -> RefOr<Schema> {
        let description = "The end of a page, as it was told: the layout of the data, and a place";
        text("^[1-9][0-9]{0,3}-[1-9][0-9]{0,2}-[1-9][0-9]{0,17}$", "16-2-7", description).into()
    }
}

impl PartialSchema for Person {
    fn schema() -> RefOr<Schema> {
        let description = "A person: a user of likes or of rooms, or a holder of seats. Its UTF-8 has at most as many bytes \
                           as the longest of those may have, which are `maxLength` characters where all are ASCII. No \
                           control character; not `.` or `..`.";
        text(FREE_NAME, "ada", description).min_length(Some(1)).into()
    }
}

impl PartialSchema for ForgetPolicy {
    fn schema() -> RefOr<Schema> {
        let description = "`remove`: the likes are gone, and the counts are lower. `anonymise`: the counts stay, without the \
                           person.";
        word(&["remove", "anonymise"], description).into()
    }
}

impl PartialSchema for Holder {
    fn schema() -> RefOr<Schema> {
        let description = "The person whom seats are for. Its UTF-8 has at most `reservations.max_holder_bytes` bytes, \
                           which are `maxLength` characters where all are ASCII. No control character; not `.` or `..`.";
        text(FREE_NAME, "ada", description).min_length(Some(1)).into()
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

impl PartialSchema for EventId {
    fn schema() -> RefOr<Schema> {
        text("^[0-9]{1,15}-[0-9]{1,15}$", "1-7", "The id of an event").into()
    }
}

impl PartialSchema for Position {
    fn schema() -> RefOr<Schema> {
        let description = "A place in a room's stream, as a frame told it: `epoch:offset`";
        text("^[0-9A-Za-z]{1,32}:[0-9]{1,19}$", "518df97c3ddebdd3:7", description).into()
    }
}

impl PartialSchema for Policy {
    fn schema() -> RefOr<Schema> {
        let description = "`strict`: the longest waiting one is next, and free seats are kept for it. `fit_first`: the \
                           longest waiting one of those whom the free seats are enough for.";
        word(&["strict", "fit_first"], description).into()
    }
}

impl PartialSchema for From {
    fn schema() -> RefOr<Schema> {
        word(&["start", "now"], "The beginning of the log, or its end").into()
    }
}

impl PartialSchema for BookingState {
    fn schema() -> RefOr<Schema> {
        word(&State::ALL.map(State::as_str), "Where the request is now").into()
    }
}

impl PartialSchema for Decision {
    fn schema() -> RefOr<Schema> {
        word(&["accepted", "rejected", "held", "waiting"], "The first decision").into()
    }
}

impl PartialSchema for Reason {
    fn schema() -> RefOr<Schema> {
        word(&bookings::Reason::ALL.map(bookings::Reason::as_str), "Why it was rejected; absent otherwise")
            .into()
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
pub(super) fn word(words: &[&'static str], description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .description(Some(description))
        .build()
}

pub(super) fn step() -> Object {
    word(&history::Step::ALL.map(history::Step::word), "The length of a bucket")
}

pub(super) fn window() -> Object {
    word(&super::history::windows(), "How far back gains count; of `all` it is totals that count")
}

pub(super) fn healthy() -> Object {
    word(&["ok", "ready"], "`ok` of `/health`, `ready` of `/ready`")
}

pub(super) fn set_state() -> Object {
    word(
        &["pending", "accepted", "rejected", "held", "confirmed", "cancelled", "expired"],
        "Where the set is now",
    )
}

pub(super) fn set_decision() -> Object {
    word(&["pending", "accepted", "rejected", "held"], "The first decision")
}

pub(super) fn event() -> Object {
    word(&super::events::words(), "What happened")
}

/// Every `error` that a [`Problem`](super::problem::Problem) of the public API can say.
const WORDS: [&str; 58] = [
    "already_cancelled",
    "already_confirmed",
    "already_rejected",
    "beyond_token",
    "body_too_large",
    "capacity_in_use",
    "counter_overflow",
    "disk_full",
    "forbidden",
    "foreign_origin",
    "forgetting_under_way",
    "gone",
    "hold_expired",
    "holder_required",
    "incomplete_body",
    "index_building",
    "invalid_add",
    "invalid_confirmation",
    "invalid_counter",
    "invalid_event_id",
    "invalid_extension",
    "invalid_handshake",
    "invalid_item",
    "invalid_json",
    "invalid_like",
    "invalid_member",
    "invalid_message",
    "invalid_query",
    "invalid_request_id",
    "invalid_reservation",
    "invalid_room",
    "invalid_token",
    "invalid_user",
    "invalid_workshop",
    "invalid_workshop_name",
    "line_too_long",
    "message_too_large",
    "method_not_allowed",
    "more_than_held",
    "not_found",
    "not_indexed",
    "not_ready",
    "not_your_user",
    "outcome_unknown",
    "overloaded",
    "part_of_set",
    "rate_limited",
    "request_id_reused",
    "request_timeout",
    "room_full",
    "still_waiting",
    "token_expired",
    "too_many_buckets",
    "too_many_connections",
    "unauthorized",
    "unavailable",
    "version_mismatch",
    "workshop_gone",
];

/// Those of the admin listener alone, which the document does not describe.
const ADMIN_WORDS: [&str; 10] = [
    "backup_exists",
    "backup_failed",
    "backup_running",
    "backup_unsound",
    "foreign_host",
    "foreign_page",
    "invalid_backup",
    "outside_backup_dir",
    "verify_failed",
    "verify_running",
];

/// Whether a client can know this word.
pub(super) fn is_error(word: &str) -> bool {
    WORDS.contains(&word) || ADMIN_WORDS.contains(&word)
}

pub(super) fn error() -> Object {
    word(&WORDS, "One word for one cause")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_error_has_a_row_with_cause_and_remedy_and_no_row_is_of_none() {
        let page = include_str!("../../docs/errors.md");
        let mut told = BTreeSet::new();
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [words, status, cause] = cells.as_slice() else { panic!("three cells in: {row}") };
            let status = status.get(..3).and_then(|status| status.parse::<u16>().ok());
            assert!(status.is_some_and(|status| (400..600).contains(&status)), "a status in: {row}");
            assert!(cause.len() > 20, "a cause in: {row}");
            for word in words.split('`').skip(1).step_by(2) {
                assert!(told.insert(word), "{word} has two rows");
            }
        }
        assert_eq!(told, WORDS.into_iter().chain(ADMIN_WORDS).collect());
    }
}
