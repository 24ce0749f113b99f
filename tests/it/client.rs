//! A small HTTP client: keep-alive connections, JSON answers, and whatever failed on the way.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// How long an answer may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

type Connections = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

/// Talks to one listener. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    connections: Connections,
    base: String,
    headers: HeaderMap,
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// `Null` if the body is no JSON.
    pub json: Value,
}

impl Answer {
    /// A header's text; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The machine word of a problem; empty if it is none.
    pub fn error(&self) -> &str {
        self.json["error"].as_str().unwrap_or_default()
    }
}

impl Client {
    pub fn new(address: &str) -> Self {
        let connections = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { connections, base: format!("http://{address}"), headers: HeaderMap::new() }
    }

    /// The same, with an API key.
    pub fn with_key(&self, key: &str) -> Self {
        let mut client = self.clone();
        client.headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
        client
    }

    /// Sends this header, and no other of its name, from now on.
    pub fn set_header(&mut self, name: &'static str, value: &str) {
        self.headers.insert(name, value.parse().unwrap());
    }

    /// Sends a request; an error if no whole answer came, in which case it may or may not have been done.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        request.headers_mut().unwrap().extend(self.headers.clone());
        let request = request.header("content-type", "application/json").body(Full::new(body.into()))?;
        let exchange = async {
            let response = self.connections.request(request).await?;
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let json = serde_json::from_str(&text).unwrap_or_default();
            Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, text, json })
        };
        tokio::time::timeout(PATIENCE, exchange).await?
    }

    pub async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        self.try_send(method, path, body).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, path, body).await
    }

    pub async fn put(&self, path: &str) -> Answer {
        self.send(Method::PUT, path, "").await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "").await
    }

    /// Reserves seats.
    pub async fn reserve(&self, workshop: &str, request: &str, seats: u32) -> Answer {
        let body = format!(r#"{{"requestId":"{request}","seats":{seats}}}"#);
        self.post(&format!("/workshops/{workshop}/reservations"), body).await
    }

    /// Asks for seats on any terms: `{"requestId": …, "seats": …, "hold": …}`.
    pub async fn request(&self, workshop: &str, body: Value) -> Answer {
        self.post(&format!("/workshops/{workshop}/reservations"), body.to_string()).await
    }

    /// Confirms, cancels or extends.
    pub async fn change(&self, workshop: &str, request: &str, change: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.post(&format!("/workshops/{workshop}/reservations/{request}/{change}"), body).await
    }

    /// Sets a workshop's capacity and rules.
    pub async fn configure(&self, workshop: &str, body: Value) -> Answer {
        self.send(Method::PUT, &format!("/workshops/{workshop}"), body.to_string()).await
    }

    /// A request with its history.
    pub async fn show(&self, workshop: &str, request: &str) -> Value {
        self.get(&format!("/workshops/{workshop}/reservations/{request}")).await.json
    }

    /// A workshop's status.
    pub async fn status(&self, workshop: &str) -> Value {
        self.get(&format!("/workshops/{workshop}/status")).await.json
    }

    /// Likes (PUT) an item.
    pub async fn like(&self, item: &str, user: &str) -> Answer {
        self.put(&format!("/likes/{item}/users/{user}")).await
    }

    /// Unlikes (DELETE) an item.
    pub async fn unlike(&self, item: &str, user: &str) -> Answer {
        self.delete(&format!("/likes/{item}/users/{user}")).await
    }

    /// An item's exact total.
    pub async fn exact(&self, item: &str) -> i64 {
        let answer = self.get(&format!("/likes/{item}?exact=true")).await;
        answer.json["total"].as_i64().unwrap_or_else(|| panic!("{answer:?}"))
    }

    /// An item's rolled-up total, once everything acknowledged before this call is in it.
    pub async fn rolled_up(&self, item: &str) -> i64 {
        let now = self.get(&format!("/likes/{item}?exact=true")).await.json["asOf"].as_i64().unwrap();
        loop {
            let answer = self.get(&format!("/likes/{item}")).await;
            // Later, not as late: acknowledged in the same millisecond is not acknowledged before it.
            if answer.json["asOf"].as_i64().unwrap() > now {
                return answer.json["total"].as_i64().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
