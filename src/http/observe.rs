//! Counts every answer by route, method and status, and says when to come back. A request that is traced has its span here.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use metrics::{Counter, Histogram};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::App;
use crate::metrics::{http_requests, http_seconds};
use crate::telemetry::{self, Telemetry};
use crate::usage::{Meter, Namespace, Usage};

/// The metrics of every route seen so far, so that a request registers nothing.
#[derive(Debug)]
pub struct Routes {
    known: RwLock<HashMap<String, Arc<Route>>>,
    usage: Usage,
}

#[derive(Debug)]
struct Route {
    name: String,
    meter: Option<Arc<Meter>>,
    seconds: Histogram,
    /// A handful, searched in order.
    requests: RwLock<Vec<((&'static str, StatusCode), Counter)>>,
}

/// Wraps every route. A layer written out, because a middleware function costs allocations a request.
#[derive(Debug, Clone)]
pub(super) struct ObserveLayer {
    pub(super) app: App,
    pub(super) telemetry: Telemetry,
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, app: self.app.clone(), telemetry: self.telemetry.clone() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Observe<S> {
    inner: S,
    app: App,
    telemetry: Telemetry,
}

impl<S: Service<Request, Response = Response>> Service<Request> for Observe<S> {
    type Response = Response;
    type Error = S::Error;
    type Future = Observing<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let method = method_label(request.method());
        Observing {
            span: self.telemetry.request(request.headers(), method, route),
            route: self.app.routes.of(route.unwrap_or("unmatched")),
            method,
            retry_after_s: self.app.limits.retry_after_s,
            started: Instant::now(),
            answer: self.inner.call(request),
        }
    }
}

pin_project! {
    /// A request on its way.
    pub(super) struct Observing<F> {
        span: telemetry::Request,
        route: Arc<Route>,
        method: &'static str,
        retry_after_s: u32,
        started: Instant,
        #[pin]
        answer: F,
    }
}

impl<F: Future<Output = Result<Response, E>>, E> Future for Observing<F> {
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = {
            let _its_commands_are_queued_here = this.span.enter();
            ready!(this.answer.poll(context))?
        };
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            // A handler that knows better has said so.
            let retry_after = response.headers_mut().entry(header::RETRY_AFTER);
            retry_after.or_insert_with(|| HeaderValue::from(*this.retry_after_s));
        }
        this.route.seconds.record(this.started.elapsed().as_secs_f64());
        this.route.count(this.method, response.status());
        this.span.answered(response.status());
        Poll::Ready(Ok(response))
    }
}

impl Routes {
    /// None seen yet; their requests count as usage.
    #[must_use]
    pub fn new(usage: &Usage) -> Self {
        Self { known: RwLock::default(), usage: usage.clone() }
    }

    fn of(&self, name: &str) -> Arc<Route> {
        if let Some(route) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(route);
        }
        let route = Route {
            name: name.to_owned(),
            meter: Namespace::of_route(name).map(|namespace| Arc::clone(self.usage.of(namespace))),
            seconds: http_seconds(name),
            requests: RwLock::default(),
        };
        let mut routes = self.known.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(routes.entry(name.to_owned()).or_insert_with(|| Arc::new(route)))
    }
}

impl Route {
    fn count(&self, method: &'static str, status: StatusCode) {
        if let Some(meter) = &self.meter {
            meter.request();
        }
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
