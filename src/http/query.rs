//! Query strings, decoded as strictly as paths are.

use std::borrow::Cow;

use super::fields::LATEST_MS;
use super::problem::Problem;
use crate::names::decode_segment;

/// A query string's pairs, in order.
#[derive(Debug, Default)]
pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(super) fn parse(query: Option<&'a str>) -> Result<Self, Problem> {
        let invalid =
            || Problem::bad_request("invalid_query", "the query has a broken escape or is no UTF-8");
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decode = |text: &'a str| -> Result<Cow<'a, str>, Problem> {
            if text.contains('+') {
                let spaced = text.replace('+', " ");
                return decode_segment(&spaced).map(|text| Cow::Owned(text.into_owned())).ok_or_else(invalid);
            }
            decode_segment(text).ok_or_else(invalid)
        };
        let pair = |pair: &'a str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        };
        pairs.map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// Every value of a name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// The one value of a name.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => {
                Err(Problem::bad_request("invalid_query", format!("`{name}` is given twice")).of_field(name))
            }
        }
    }

    /// How many entries a page has: from 1 to `max`, which it is if it is not said.
    pub(super) fn limit(&self, max: u32) -> Result<u32, Problem> {
        let invalid = || {
            let detail = format!("`limit` is a whole number from 1 to {max}");
            Problem::bad_request("invalid_query", detail).of_field("limit")
        };
        match self.one("limit")? {
            None => Ok(max),
            Some(text) => {
                let plain = text.bytes().all(|byte| byte.is_ascii_digit());
                let limit = text.parse().ok().filter(|limit| plain && (1..=max).contains(limit));
                limit.ok_or_else(invalid)
            }
        }
    }

    /// A time, in ms since 1970.
    pub(super) fn time(&self, name: &'static str) -> Result<Option<i64>, Problem> {
        let invalid = || {
            let detail = format!("`{name}` is a whole number of milliseconds from 0 to {LATEST_MS}");
            Problem::bad_request("invalid_query", detail).of_field(name)
        };
        let Some(text) = self.one(name)? else { return Ok(None) };
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let time = text.parse().ok().filter(|time| plain && (0..=LATEST_MS).contains(time));
        time.map(Some).ok_or_else(invalid)
    }

    /// A flag: `true`, `false`, or absent for false.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        match self.one(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => {
                Err(Problem::bad_request("invalid_query", format!("`{name}` is true or false"))
                    .of_field(name))
            }
        }
    }
}
