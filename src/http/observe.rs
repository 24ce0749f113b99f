//! Counts every answer by route, method and status, and says when to come back.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use metrics::{Counter, Histogram};

use super::App;
use crate::metrics::{http_requests, http_seconds};

/// The metrics of every route seen so far, so that a request registers nothing.
#[derive(Debug, Default)]
pub struct Routes(RwLock<HashMap<String, Arc<Route>>>);

#[derive(Debug)]
struct Route {
    name: String,
    seconds: Histogram,
    /// A handful, searched in order.
    requests: RwLock<Vec<((&'static str, StatusCode), Counter)>>,
}

pub(super) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str);
    let route = app.routes.of(route);
    let method = method_label(request.method());
    let mut response = next.run(request).await;
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(app.limits.retry_after_s));
    }
    route.seconds.record(started.elapsed().as_secs_f64());
    route.count(method, response.status());
    response
}

impl Routes {
    fn of(&self, name: &str) -> Arc<Route> {
        if let Some(route) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(route);
        }
        let route = Route { name: name.to_owned(), seconds: http_seconds(name), requests: RwLock::default() };
        let mut routes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(routes.entry(name.to_owned()).or_insert_with(|| Arc::new(route)))
    }
}

impl Route {
    fn count(&self, method: &'static str, status: StatusCode) {
        let key = (method, status);
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counter)) = known.iter().find(|(known, _)| *known == key) {
            counter.increment(1);
            return;
        }
        drop(known);
        let counter = http_requests(&self.name, method, status.as_u16());
        counter.increment(1);
        self.requests.write().unwrap_or_else(PoisonError::into_inner).push((key, counter));
    }
}

/// Methods are whatever a client writes; labels are bounded.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
