//! The OpenAPI document, generated from the handlers.

use axum::http::Method;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{self, RefOr};
use utoipa::{IntoResponses, Number, OpenApi};

use super::auth::user::IN_QUERY;
use super::auth::{Keys, policy};
use super::problem::Problem;
use super::router::Limits;
use super::schema;

/// The names of the security schemes.
const KEY: &str = "key";
const TOKEN: &str = "token";
const TOKEN_IN_QUERY: &str = "tokenInQuery";

/// What every route may answer before it decides.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Rejections {
    /// A name, a field or the query is not what it must be; `error` says which.
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(Problem),
    /// `unauthorized`: no key, or an unknown one. `invalid_token`; `token_expired`: get a new one.
    #[response(status = 401, content_type = "application/problem+json",
        headers(("WWW-Authenticate" = String, description = "Bearer")))]
    Unauthorized(Problem),
    /// `forbidden`: the key or the token lacks the scope. Of a token: `not_your_user`: it is another user's; `beyond_token`: it is
    /// for other items, workshops or rooms. Of a WebSocket: `foreign_origin`.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// No such path.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
}

/// What a route with a body may answer while reading it.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum BodyRejections {
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(Problem),
    /// The body is larger than `server.max_body_bytes`.
    #[response(status = 413, content_type = "application/problem+json")]
    BodyTooLarge(Problem),
}

/// What every route of a workshop may answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Gone {
    /// `gone`: the workshop was deleted.
    #[response(status = 410, content_type = "application/problem+json")]
    Gone(Problem),
}

/// Why something cannot be done with a request.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Wrongs {
    /// `hold_expired`, `already_confirmed`, `already_cancelled`, `already_rejected`, `still_waiting`, `more_than_held`, `part_of_set`,
    /// `workshop_gone`.
    #[response(status = 409, content_type = "application/problem+json")]
    Wrong(Problem),
}

/// What a room may say about how much is too much.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum TooMany {
    /// `room_full`, `too_many_connections`, `rate_limited`: surely not done; come back.
    #[response(status = 429, content_type = "application/problem+json",
        headers(("Retry-After" = u32, description = "seconds")))]
    TooMany(Problem),
}

/// What a stream may meet before it begins.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum TooManyStreams {
    /// `too_many_connections`: an end user has as many streams open as it may (`auth.token_max_streams`).
    #[response(status = 429, content_type = "application/problem+json",
        headers(("Retry-After" = u32, description = "seconds")))]
    TooManyStreams(Problem),
}

/// What a partition may say instead of an outcome.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Refusals {
    /// `overloaded` and `unavailable`: surely not done. `outcome_unknown`: perhaps done, repeat with the same id.
    #[response(status = 503, content_type = "application/problem+json",
        headers(("Retry-After" = u32, description = "seconds, `server.retry_after_s`")))]
    Unavailable(Problem),
    /// The disk is full; surely not done.
    #[response(status = 507, content_type = "application/problem+json")]
    DiskFull(Problem),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "headcount",
        description = "Counts people when they all arrive at once: likes, reservations and rooms. Bounds and the need for \
                       a key are those of this server's settings.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Problem, schema::Item, schema::Items, schema::QueryItems, schema::Counter, schema::Amount, schema::User, schema::Workshop, schema::RequestId,
        schema::Seats, schema::Capacity, schema::TtlMs, schema::Holder, schema::Time, schema::Policy,
        schema::WaitlistLength, schema::BookingState, schema::Decision, schema::Reason, schema::Lines, super::sets::LineBody, schema::PageLimit, schema::LikesPageLimit, schema::LikesCursor, schema::Person, schema::ForgetPolicy, schema::From, schema::EventId,
        super::workshops::WaitlistBody, schema::Room, schema::Member, schema::MessageId, schema::Position, schema::AnyJson,
        schema::Step, schema::Window, schema::TrendingLimit,
        super::rooms::messages::TextMessage, super::rooms::messages::DataMessage, super::rooms::told::RoomPresence,
        super::rooms::told::RoomMessage, super::rooms::told::RoomMember, super::rooms::told::RoomUpdate)),
    tags(
        (name = "service", description = "Whether it lives and serves"),
        (name = "likes", description = "How many users like an item"),
        (name = "people", description = "What concerns a person whatever it did"),
        (name = "counters", description = "How often something happened, whoever did it"),
        (name = "reservations", description = "Whether there is a seat left in a workshop"),
        (name = "workshops", description = "What workshops there are, how they are sold, and what happens in them"),
        (name = "rooms", description = "Who is here now, and what they say. Listen at `/rooms/{room}/socket` (WebSocket) \
                                        or `/rooms/{room}/events` (server-sent events), both of which carry `RoomEvent`s")
    )
)]
struct Document;

/// The document that the routes are added to.
pub(super) fn base() -> openapi::OpenApi {
    Document::openapi()
}

/// Says of each operation that tokens may use how they come.
fn tell_of_tokens(document: &mut openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [
            (Method::GET, &mut item.get),
            (Method::PUT, &mut item.put),
            (Method::POST, &mut item.post),
            (Method::DELETE, &mut item.delete),
        ];
        for (method, operation) in operations {
            let (Some(operation), Some(policy)) = (operation, policy::of(&method, path)) else { continue };
            let ways = [Some(KEY), Some(TOKEN), policy.in_query.then_some(TOKEN_IN_QUERY)];
            let ways = ways.into_iter().flatten().map(|way| SecurityRequirement::new(way, [""; 0]));
            operation.security = Some(ways.collect());
        }
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").description(Some(
        "An end user's token, signed by the site's back end with a secret of `auth.token_secrets`.",
    ));
    let in_query =
        "The same where a browser cannot set a header: of WebSockets and server-sent events alone.";
    let in_query = ApiKey::Query(ApiKeyValue::with_description(IN_QUERY, in_query));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer.build()));
    components.add_security_scheme(TOKEN_IN_QUERY, SecurityScheme::ApiKey(in_query));
}

/// Writes into a document what depends on the settings: bounds, and whether a key or a token is asked for.
pub(super) fn fit(document: &mut openapi::OpenApi, limits: &Limits, keys: &Keys) {
    if keys.has_tokens() {
        tell_of_tokens(document);
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key of `auth.keys`, with the scope that the operation asks for."))
        .build();
    document.security = Some(match keys.is_empty() {
        false => vec![SecurityRequirement::new(KEY, [""; 0])],
        // Nothing asks for a key, and one that is sent does no harm.
        true => vec![SecurityRequirement::default(), SecurityRequirement::new(KEY, [""; 0])],
    });
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(KEY, SecurityScheme::Http(bearer));
    for (name, schema) in &mut components.schemas {
        match (name.as_str(), schema) {
            ("Item", RefOr::T(Schema::Object(item))) => item.max_length = Some(limits.max_item_bytes),
            ("Counter", RefOr::T(Schema::Object(counter))) => {
                counter.max_length = Some(limits.max_item_bytes);
            }
            ("User", RefOr::T(Schema::Object(user))) => user.max_length = Some(limits.max_user_bytes),
            ("Seats", RefOr::T(Schema::Object(seats))) => {
                seats.maximum = Some(Number::UInt(limits.max_seats_per_request as usize));
            }
            ("Holder", RefOr::T(Schema::Object(holder))) => holder.max_length = Some(limits.max_holder_bytes),
            ("Capacity", RefOr::T(Schema::Object(capacity))) => {
                capacity.maximum = Some(Number::UInt(limits.max_capacity as usize));
            }
            ("TtlMs", RefOr::T(Schema::Object(ttl))) => {
                ttl.maximum = usize::try_from(limits.max_hold_ms).ok().map(Number::UInt);
            }
            ("OfferTtlMs", RefOr::T(Schema::Object(ttl))) => {
                ttl.maximum = usize::try_from(limits.max_offer_ms).ok().map(Number::UInt);
            }
            ("WaitlistLength", RefOr::T(Schema::Object(length))) => {
                length.maximum = Some(Number::UInt(limits.max_waitlist as usize));
            }
            ("Lines", RefOr::T(Schema::Array(lines))) => lines.max_items = Some(limits.max_lines_per_set),
            ("PageLimit", RefOr::T(Schema::Object(limit))) => {
                limit.maximum = Some(Number::UInt(limits.max_page as usize));
            }
            ("TrendingLimit", RefOr::T(Schema::Object(limit))) => {
                limit.maximum = Some(Number::UInt(limits.max_trending as usize));
            }
            ("LikesPageLimit", RefOr::T(Schema::Object(limit))) => {
                limit.maximum = Some(Number::UInt(limits.max_likes_page as usize));
            }
            ("Person", RefOr::T(Schema::Object(person))) => person.max_length = Some(limits.max_person_bytes),
            ("Room", RefOr::T(Schema::Object(room))) => room.max_length = Some(limits.max_room_bytes),
            ("Member", RefOr::T(Schema::Object(user))) => user.max_length = Some(limits.max_member_bytes),
            ("QueryItems", RefOr::T(Schema::Array(items))) => {
                items.max_items = Some(limits.max_items_per_query);
            }
            ("Items", RefOr::T(Schema::Array(items))) => items.max_items = Some(limits.max_items_per_read),
            _ => {}
        }
    }
}
