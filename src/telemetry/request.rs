//! The span of a request, and whether there is one: the caller's `traceparent` says so, or chance does.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer};

thread_local! {
    /// The request whose handler runs on this thread now, if it is traced.
    static CURRENT: RefCell<Option<Arc<Traced>>> = const { RefCell::new(None) };
}

/// A request's span, and what makes others below it.
pub(super) struct Traced {
    pub(super) tracer: SdkTracer,
    /// The request's span is its active one.
    pub(super) context: Context,
}

/// A request, from its head to that of its answer. Dropped, its span ends.
#[derive(Debug)]
pub struct Request(Option<Arc<Traced>>);

/// While this lives, commands that are queued on this thread are the request's.
pub(crate) struct Entered {
    /// Whose they were before.
    before: Option<Arc<Traced>>,
    is_traced: bool,
}

/// Whose commands are queued on this thread now.
pub(super) fn current() -> Option<Arc<Traced>> {
    CURRENT.with_borrow(Option::clone)
}

impl Request {
    /// One that is not traced.
    pub(super) const UNTRACED: Self = Self(None);

    /// Begins a request's span, if it is to be traced: as its caller says in `traceparent` (W3C Trace Context), or else by
    /// chance. `route` is the pattern and not the path, which has names in it.
    pub(super) fn begin(
        tracer: &SdkTracer,
        sample_ratio: f64,
        headers: &HeaderMap,
        (method, route): (&'static str, Option<&str>),
    ) -> Self {
        let caller = match headers.contains_key("traceparent") {
            true => {
                TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers))
            }
            false => Context::new(),
        };
        let is_sampled = match caller.span().span_context() {
            caller if caller.is_valid() => caller.is_sampled(),
            _ => chance(sample_ratio),
        };
        if !is_sampled {
            return Self::UNTRACED;
        }
        let (name, route) = match route {
            Some(route) => (format!("{method} {route}"), Some(KeyValue::new("http.route", route.to_owned()))),
            None => (method.to_owned(), None),
        };
        let attributes = [KeyValue::new("http.request.method", method)].into_iter().chain(route);
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_attributes(attributes);
        let context = caller.with_span(tracer.build_with_context(span, &caller));
        Self(Some(Arc::new(Traced { tracer: tracer.clone(), context })))
    }

    /// Has commands that are queued on this thread be this request's.
    pub(crate) fn enter(&self) -> Entered {
        let before = self.0.as_ref().and_then(|traced| CURRENT.replace(Some(Arc::clone(traced))));
        Entered { before, is_traced: self.0.is_some() }
    }

    /// Ends its span.
    pub(crate) fn answered(&self, status: StatusCode) {
        let Some(traced) = &self.0 else { return };
        let span = traced.context.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // Its commands may still be on their way. Of one that was answered it has ended already.
        if let Some(traced) = &self.0 {
            traced.context.span().end();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_traced {
            CURRENT.set(self.before.take());
        }
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traced").field(self.context.span().span_context()).finish()
    }
}

/// True so often, in the long run.
fn chance(ratio: f64) -> bool {
    if ratio <= 0.0 {
        return false;
    }
    // Random bits without a system call, of which a double holds 53.
    let random = u64::from_be_bytes(RandomIdGenerator::default().new_span_id().to_bytes()) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let random = random as f64 / (1_u64 << 53) as f64;
    random < ratio
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{TraceFlags, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

    fn traced(parent: Option<&str>, ratio: f64) -> Option<(String, TraceFlags)> {
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let mut headers = HeaderMap::new();
        if let Some(parent) = parent {
            headers.insert("traceparent", parent.parse().unwrap());
        }
        let request = Request::begin(&tracer, ratio, &headers, ("GET", Some("/likes/{item}")));
        let context = request.0.as_ref()?.context.span().span_context().clone();
        Some((context.trace_id().to_string(), context.trace_flags()))
    }

    #[test]
    fn the_caller_says_whether_and_else_chance_does() {
        let (sampled, not_sampled) = (format!("{PARENT}-01"), format!("{PARENT}-00"));
        let (trace, flags) = traced(Some(&sampled), 0.0).unwrap();
        assert_eq!((trace.as_str(), flags), ("0af7651916cd43dd8448eb211c80319c", TraceFlags::SAMPLED));
        assert!(traced(Some(&not_sampled), 1.0).is_none());
        for none in [None, Some("nonsense"), Some("00-00000000000000000000000000000000-b7ad6b7169203331-01")]
        {
            assert!(traced(none, 0.0).is_none(), "{none:?}");
            assert!(traced(none, 1.0).is_some_and(|(trace, _)| !trace.starts_with("0af7")), "{none:?}");
        }
        let half = (0..1_000).filter(|_| chance(0.5)).count();
        assert!((300..700).contains(&half), "{half}");
    }

    #[test]
    fn a_thread_knows_the_request_that_it_works_for_and_no_other() {
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let begin = |ratio| Request::begin(&tracer, ratio, &HeaderMap::new(), ("GET", None));
        let (request, other, untraced) = (begin(1.0), begin(1.0), begin(0.0));
        let is_current = |request: &Request| match (&request.0, current()) {
            (Some(traced), Some(current)) => Arc::ptr_eq(traced, &current),
            _ => false,
        };
        let entered = request.enter();
        {
            let _inner = other.enter();
            let _untraced = untraced.enter();
            assert!(is_current(&other));
        }
        assert!(is_current(&request));
        drop(entered);
        assert!(current().is_none());
    }
}
