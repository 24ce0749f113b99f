//! Fields of bodies that are perhaps there, each parsed as strictly as those that must be. `null` is absent.

use serde_json::value::RawValue;

use super::App;
use super::beyond::Beyond;
use super::problem::Problem;
use crate::config::Reservations;
use crate::reservations::HolderName;
use crate::reservations::types::whole_number;

/// JSON text.
pub(super) fn text(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

/// `true`, `false`, or absent for false.
pub(super) fn flag(
    word: &'static str,
    field: &'static str,
    json: Option<&RawValue>,
) -> Result<bool, Problem> {
    let Some(json) = json else { return Ok(false) };
    let flag = serde_json::from_str(json.get()).ok();
    flag.ok_or_else(|| Problem::bad_request(word, format!("`{field}` is true or false")).of_field(field))
}

/// A whole number within both bounds.
pub(super) fn whole(
    word: &'static str,
    field: &'static str,
    json: Option<&RawValue>,
    (min, max): (i64, impl TryInto<i64>),
) -> Result<Option<i64>, Problem> {
    let Some(json) = json else { return Ok(None) };
    let max = max.try_into().unwrap_or(LATEST_MS).min(LATEST_MS);
    let detail = || format!("`{field}` is a whole number from {min} to {max}");
    let number = whole_number(json.get(), min, max);
    number.map(Some).ok_or_else(|| Problem::bad_request(word, detail()).of_field(field))
}

/// How long a hold lives, in ms.
pub(super) fn hold_ms(
    word: &'static str,
    json: Option<&RawValue>,
    app: &App,
    beyond: &mut Beyond,
) -> Result<Option<i64>, Problem> {
    let today = whole(word, "ttlMs", json, (1, app.limits.max_hold_ms));
    beyond.allow(today, || whole(word, "ttlMs", json, (1, Reservations::MOST_HOLD_MS)).ok())
}

/// Beyond the year 100,000, and far below 2^53.
pub(super) const LATEST_MS: i64 = 4_000_000_000_000_000;

/// A person.
pub(super) fn holder(
    word: &'static str,
    json: Option<&RawValue>,
    app: &App,
    beyond: &mut Beyond,
) -> Result<Option<HolderName>, Problem> {
    let Some(json) = json else { return Ok(None) };
    let within = |most_bytes| text(json).and_then(|holder| HolderName::parse(&holder, most_bytes));
    let today = within(app.limits.max_holder_bytes).ok_or_else(|| invalid_holder(word, app));
    beyond.allow(today, || within(usize::from(Reservations::MOST_HOLDER_BYTES))).map(Some)
}

pub(super) fn invalid_holder(word: &'static str, app: &App) -> Problem {
    let max = app.limits.max_holder_bytes;
    let detail = format!("`holder` is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`");
    Problem::bad_request(word, detail).of_field("holder")
}
