//! Whatever a request holds, its answer was decided on purpose: every rule for names, bodies and queries,
//! and never a 5xx.

mod bodies;
mod names;
mod paths;

use serde_json::{Value, json};

use crate::client::Answer;
use crate::raw;
use crate::service::Service;

/// What a request should get: a status, and of a problem its word and field.
type Expected = (u16, &'static str, &'static str);

const OK: Expected = (200, "", "");

fn assert_answer(answer: &Answer, (status, error, field): Expected, sent: &str) {
    assert_eq!((answer.status, answer.error()), (status, error), "{sent}: {answer:?}");
    if error.is_empty() {
        assert_eq!(answer.header("content-type"), "application/json", "{sent}");
        return;
    }
    assert_eq!(answer.header("content-type"), "application/problem+json", "{sent}");
    assert_eq!(answer.json["type"], format!("urn:headcount:problem:{error}"), "{sent}");
    assert_eq!(answer.json["status"], status, "{sent}");
    assert!(!answer.json["title"].as_str().unwrap().is_empty(), "{sent}");
    assert!(!answer.json["detail"].as_str().unwrap().is_empty(), "{sent}");
    let expected = if field.is_empty() { Value::Null } else { json!(field) };
    assert_eq!(answer.json["field"], expected, "{sent}");
}

fn check(service: &Service, method: &str, path: impl AsRef<[u8]>, body: &[u8], expected: Expected) -> Answer {
    let answer = raw::send(&service.public, method, &path, body);
    let path = String::from_utf8_lossy(path.as_ref());
    let sent = format!("{method} {path} {}", String::from_utf8_lossy(&body[..body.len().min(200)]));
    assert_answer(&answer, expected, &sent);
    answer
}
