//! Likes and unlikes in bulk: a line each, in and out, as they come.
//!
//! Lines are read no faster than they are decided, and decided no faster than their outcomes are read. What has come
//! so far goes on together: a run of lines is one command a partition.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::lines::{Bounds, Lines, Stop, Taken, What};
use crate::http::App;
use crate::http::auth::policy::Feature;
use crate::http::auth::{Permit, Write};
use crate::http::body::object_in;
use crate::http::fields::text;
use crate::http::path::{invalid_item, invalid_user};
use crate::http::problem::Problem;
use crate::http::schema;
use crate::likes::bulk::Wanted;
use crate::likes::{ItemId, UserId};

const INVALID: &str = "invalid_like";
/// Lines that share a command at most.
const RUN: usize = 128;
/// What an outcome takes, about.
const OUTCOME_BYTES: usize = 128;

/// One line in. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::http) struct BulkLine<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Item, required)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = schema::User, required)]
    user: Option<&'a RawValue>,
    /// The same as `user`, as in a posted like.
    #[serde(rename = "userId", borrow)]
    #[schema(value_type = Option<schema::User>)]
    user_id: Option<&'a RawValue>,
    /// Like, or unlike; absent: like.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    liked: Option<&'a RawValue>,
}

/// One line out: of the line of this number, in the order of the lines. `error` is in one that was not done.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(in crate::http) enum BulkOutcome<'a> {
    Done(BulkLike<'a>),
    Problem(BulkProblem<'a>),
}

/// What became of a line that was done.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct BulkLike<'a> {
    /// Which line, from 1.
    #[schema(minimum = 1)]
    line: u64,
    /// 200; what a request of its own would have been answered with.
    #[schema(minimum = 200, maximum = 200)]
    status: u16,
    #[schema(value_type = schema::Item)]
    item: &'a str,
    #[schema(value_type = schema::User)]
    user: &'a str,
    /// Whether the user likes the item now.
    liked: bool,
    /// Whether it was different before.
    changed: bool,
    /// The shard that owns the user.
    shard: u32,
}

/// Why a line was not done: a problem document with its `line`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct BulkProblem<'a> {
    /// Which line, from 1.
    #[schema(minimum = 1)]
    line: u64,
    #[serde(flatten)]
    problem: &'a Problem,
}

/// Like and unlike many items, a line each (newline-delimited JSON), answered a line each, in order, as they come.
///
/// An outcome that was told is durable. A line that is wrong, or refused, does not end the stream.
#[utoipa::path(post, path = "/batch/likes", operation_id = "bulk_likes", tag = "likes",
    request_body(content = BulkLine, content_type = "application/x-ndjson"),
    responses((status = 200, body = BulkOutcome, content_type = "application/x-ndjson",
            description = "a stream; each line is of this shape"),
        crate::http::openapi::Rejections, crate::http::openapi::TooManyStreams, crate::http::openapi::Refusals))]
pub(in crate::http) async fn likes(
    permit: Permit<Write>,
    State(app): State<App>,
    body: Body,
) -> Result<Response, Problem> {
    let stay = permit.stay(&app)?;
    let place = app.bulk.open().ok_or_else(|| {
        let detail = "too many streams are open (bulk.max_streams)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
    })?;
    let limits = &app.limits;
    let bounds = Bounds { max_line_bytes: limits.max_line_bytes, idle_timeout: limits.bulk_idle_timeout };
    let run = RUN.min(limits.bulk_window);
    let runs = limits.bulk_window / run;
    let outcomes = Lines::new(body, bounds, app.draining.clone())
        .stream()
        .ready_chunks(run)
        .then(move |lines| submit(app.clone(), permit.clone(), lines))
        .buffered(runs)
        .map(move |outcomes| {
            let _until_the_stream_ends = (&place, &stay);
            Ok::<_, Infallible>(outcomes)
        });
    let kind = (header::CONTENT_TYPE, "application/x-ndjson");
    Ok(([kind], Body::from_stream(outcomes)).into_response())
}

/// Puts lines on their way, one run after another; their outcomes come later, several runs at a time.
async fn submit(
    app: App,
    permit: Permit<Write>,
    lines: Vec<Taken>,
) -> impl Future<Output = Bytes> + Send + 'static {
    let mut wanted = Vec::with_capacity(lines.len());
    let read: Vec<(u64, Result<usize, Problem>)> = lines
        .into_iter()
        .map(|taken| {
            let place = read(&app, &permit, taken.what).map(|one| {
                wanted.push(one);
                wanted.len() - 1
            });
            (taken.number, place)
        })
        .collect();
    let submitted = app.bulk.submit(wanted).await;
    async move {
        let decided = submitted.decided().await;
        let mut text = Vec::with_capacity(read.len() * OUTCOME_BYTES);
        let mut problems = 0;
        for (line, place) in &read {
            let outcome = match place {
                Ok(place) => decided.get(*place).map_err(Problem::from),
                Err(problem) => Err(problem.clone()),
            };
            problems += u64::from(outcome.is_err());
            word(&mut text, *line, outcome);
        }
        app.bulk.count(read.len() as u64 - problems, problems);
        Bytes::from(text)
    }
}

fn read(app: &App, permit: &Permit<Write>, what: What) -> Result<Wanted, Problem> {
    match what {
        What::Line(line) => {
            let wanted = parse(app, &line)?;
            if let Some(user) = permit.user() {
                user.is_still_there(app.clock.now_ms())?;
                user.is(wanted.user.as_str(), Some("user"))?;
                user.reaches(Feature::Likes, wanted.item.as_str())?;
            }
            Ok(wanted)
        }
        What::TooLong => {
            let detail = format!("a line has at most {} bytes", app.limits.max_line_bytes);
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "line_too_long", detail))
        }
        What::Stopped(stop) => Err(match stop {
            Stop::Idle => {
                let detail = "nothing came for too long (bulk.idle_timeout_ms); the stream ends";
                Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
            }
            Stop::Incomplete => Problem::bad_request("incomplete_body", "the body did not arrive whole"),
            Stop::Draining => {
                let detail = "the service stops: neither this line nor any after it is done";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            }
        }),
    }
}

fn parse(app: &App, line: &[u8]) -> Result<Wanted, Problem> {
    let like: BulkLine<'_> = object_in(line, "the line", || {
        Problem::bad_request(INVALID, "a line is an object with the texts `item` and `user`")
    })?;
    let item = like.item.and_then(text).and_then(|item| ItemId::parse(&item, app.limits.max_item_bytes));
    let item = item.ok_or_else(|| invalid_item(app).of_field("item"))?;
    let user = |json| text(json).and_then(|user| UserId::parse(&user, app.limits.max_user_bytes));
    let user = match (like.user, like.user_id) {
        (None, None) => Err(invalid_user(app).of_field("user")),
        (Some(json), None) => user(json).ok_or_else(|| invalid_user(app).of_field("user")),
        (None, Some(json)) => user(json).ok_or_else(|| invalid_user(app).of_field("userId")),
        (Some(_), Some(_)) => {
            let detail = "`user` and `userId` are the same field: give one of them";
            Err(Problem::bad_request(INVALID, detail).of_field("userId"))
        }
    }?;
    let liked = match like.liked.map(|json| serde_json::from_str(json.get())) {
        None => true,
        Some(Ok(liked)) => liked,
        Some(Err(_)) => {
            return Err(Problem::bad_request(INVALID, "`liked` is true or false").of_field("liked"));
        }
    };
    Ok(app.bulk.wanted(user, item, liked))
}

fn word(text: &mut Vec<u8>, line: u64, outcome: Result<(&Wanted, bool), Problem>) {
    let outcome = match &outcome {
        Ok((Wanted { shard, user, item, liked }, changed)) => BulkOutcome::Done(BulkLike {
            line,
            status: StatusCode::OK.as_u16(),
            item: item.as_str(),
            user: user.as_str(),
            liked: *liked,
            changed: *changed,
            shard: *shard,
        }),
        Err(problem) => BulkOutcome::Problem(BulkProblem { line, problem }),
    };
    let _written_to_memory = serde_json::to_writer(&mut *text, &outcome);
    text.push(b'\n');
}
