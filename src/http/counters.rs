//! The routes of counters without members.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Read, Write};
use super::body::Body;
use super::fields::text;
use super::likes::totals_of;
use super::path::Counter;
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::likes::counters::decide::Added;
use crate::likes::counters::{Add, AddId};
use crate::names::REQUEST_ID;
use crate::partition::Refusal;
use crate::reservations::types::whole_number;

const INVALID: &str = "invalid_add";
/// As far as every whole number is exact, however JSON spells it, and so is the next one.
const EXACT: i64 = (1 << 53) - 1;

/// Something to add. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct AddBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Amount, required)]
    amount: Option<&'a RawValue>,
    /// Makes it count once, for as long as `counters.dedupe_ttl_ms` says.
    #[serde(rename = "requestId", borrow)]
    #[schema(value_type = Option<schema::RequestId>)]
    request_id: Option<&'a RawValue>,
}

impl AddBody<'_> {
    fn parse(body: &Body) -> Result<(i64, Option<AddId>), Problem> {
        let add: AddBody<'_> = body.object(|| {
            let detail = "an add is an object with `amount`, a whole number";
            Problem::bad_request(INVALID, detail).of_field("amount")
        })?;
        let amount = add.amount.and_then(|json| amount(json.get())).ok_or_else(|| {
            let detail = format!("`amount` is a whole number from {} to {}", i64::MIN, i64::MAX);
            Problem::bad_request(INVALID, detail).of_field("amount")
        })?;
        let request = match add.request_id {
            None => None,
            Some(json) => Some(text(json).and_then(|id| AddId::parse(&id)).ok_or_else(|| {
                let detail = format!("`requestId` is {REQUEST_ID}");
                Problem::bad_request(INVALID, detail).of_field("requestId")
            })?),
        };
        Ok((amount, request))
    }
}

/// A JSON number as it was written: digits to the last one, other spellings (`1e3`) as far as they are exact.
fn amount(json: &str) -> Option<i64> {
    json.parse().ok().or_else(|| whole_number(json, -EXACT, EXACT))
}

/// An add, decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddAnswer {
    #[schema(value_type = schema::Counter)]
    counter: String,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::RequestId, required = false)]
    request_id: Option<String>,
    /// Whether this repeats an earlier decision; nothing was added now.
    replayed: bool,
    /// The shard that counts it.
    shard: u32,
    /// With `?exact=true`: the counter's total, this add included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<i64>,
}

/// A counter's total.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CounterAnswer {
    #[schema(value_type = schema::Counter)]
    counter: String,
    total: i64,
    /// False: rolled up, as of `asOf`. True: every shard was asked.
    exact: bool,
    /// Everything acknowledged before this time is counted; ms since 1970.
    as_of: i64,
    /// How long ago that was, in ms.
    #[schema(minimum = 0)]
    age_ms: i64,
    /// The roll-up run that last changed the total; never falls. Not of an exact total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<u64>,
}

/// Add to a counter, which springs up at its first add.
///
/// With a `requestId` it counts once: repeated, it gets the first answer.
#[utoipa::path(post, path = "/counters/{counter}", operation_id = "add_to_counter", tag = "counters",
    params(("counter" = schema::Counter, Path),
        ("exact" = Option<bool>, Query, description = "answer with the total, this add included")),
    request_body = AddBody,
    responses((status = 200, body = AddAnswer, description = "added"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "counter_overflow"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "request_id_reused"),
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn add(
    _permit: Permit<Write>,
    State(app): State<App>,
    Counter(counter): Counter,
    uri: Uri,
    body: Body,
) -> Result<Json<AddAnswer>, Problem> {
    let (amount, request) = AddBody::parse(&body)?;
    let exact = Query::parse(uri.query())?.flag("exact")?;
    let request_id = request.as_ref().map(|id| id.as_str().to_owned());
    let outcome = app.counters.add(Add { counter: counter.clone(), amount, request }).await?;
    let replayed = match outcome.added {
        Added::Decided { added: true, replayed } => replayed,
        Added::Decided { added: false, .. } => {
            let share = app.counters.share();
            let detail = format!(
                "the shard of this add counts from -{share} to {share}, and would be beyond; nothing was added"
            );
            return Err(Problem::conflict("counter_overflow", detail).of_field("amount"));
        }
        Added::Reused { first_amount } => {
            let detail = format!("this requestId was first used with the amount {first_amount}");
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Err(Problem::new(status, "request_id_reused", detail).of_field("amount"));
        }
    };
    let total = match exact {
        // The add is durable by now: whatever refuses the total, "surely not done" would be wrong.
        true => {
            let totals = app.shards.totals(std::slice::from_ref(counter.item())).await;
            totals.map_err(|_| Refusal::OutcomeUnknown)?.first().copied()
        }
        false => None,
    };
    let counter = counter.to_string();
    Ok(Json(AddAnswer { counter, amount, request_id, replayed, shard: outcome.shard, total }))
}

/// A counter's total: rolled up with its age, or exact. Of a counter that nobody has added to: 0.
#[utoipa::path(get, path = "/counters/{counter}", operation_id = "counter_total", tag = "counters",
    params(("counter" = schema::Counter, Path), ("exact" = Option<bool>, Query, description = "ask every shard")),
    responses((status = 200, body = CounterAnswer, description = "the total"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn total(
    _permit: Permit<Read>,
    State(app): State<App>,
    Counter(counter): Counter,
    uri: Uri,
) -> Result<Json<CounterAnswer>, Problem> {
    let exact = Query::parse(uri.query())?.flag("exact")?;
    let total = totals_of(&app, std::slice::from_ref(counter.item()), exact).await?.pop();
    let total = total.ok_or_else(Problem::not_found)?;
    Ok(Json(CounterAnswer {
        counter: counter.to_string(),
        total: total.total,
        exact: total.exact,
        as_of: total.as_of,
        age_ms: total.age_ms,
        version: total.version,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_to_its_last_digit_or_none() {
        assert_eq!(amount("9223372036854775807"), Some(i64::MAX));
        assert_eq!(amount("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(amount("9007199254740993"), Some((1 << 53) + 1), "no float in between");
        assert_eq!(amount("9007199254740993.0"), None, "which a float would make another number of");
        for (spelt, number) in [("0", 0), ("-0", 0), ("1.0", 1), ("1e3", 1_000), ("-25e-1", 0)] {
            let expected = (spelt != "-25e-1").then_some(number);
            assert_eq!(amount(spelt), expected, "{spelt}");
        }
        for none in
            ["9223372036854775808", "-9223372036854775809", "1e19", "0.5", "\"1\"", "true", "null", "[1]", ""]
        {
            assert_eq!(amount(none), None, "{none}");
        }
    }
}
