//! Where spans go: to a collector, in batches, from a thread of the SDK. What does not fit into its queue is dropped, and the
//! log says so; no request waits for it.

use std::env;
use std::pin::Pin;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{HOST, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::rt::TokioIo;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::{Error, Request};
use crate::config;

/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of the service waits for the last spans to be taken.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const ANSWER_BYTES: usize = 64 * 1024;

/// Makes the spans of requests, where `telemetry.otlp_endpoint` says where they go.
#[derive(Debug, Clone)]
pub struct Telemetry(Option<Traces>);

#[derive(Debug, Clone)]
struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    sample_ratio: f64,
}

impl Telemetry {
    /// Starts what sends spans to the collector. Call it on a tokio runtime: they go out from there.
    ///
    /// # Errors
    /// When the SDK refuses the endpoint.
    pub fn start(settings: &config::Telemetry) -> Result<Self, Error> {
        let Some(endpoint) = &settings.otlp_endpoint else { return Ok(Self::off()) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client(Handle::current()))
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build()
            .map_err(|error| Error(error.to_string()))?;
        let mut resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("headcount");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            // A request that is not to be traced never comes to it.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("headcount");
        Ok(Self(Some(Traces { provider, tracer, sample_ratio: settings.sample_ratio })))
    }

    /// What makes none.
    pub(crate) fn off() -> Self {
        Self(None)
    }

    /// A request by its head, and by the pattern of its route if it has one.
    pub(crate) fn request(&self, headers: &HeaderMap, method: &'static str, route: Option<&str>) -> Request {
        match &self.0 {
            Some(traces) => Request::begin(&traces.tracer, traces.sample_ratio, headers, (method, route)),
            None => Request::UNTRACED,
        }
    }

    /// Sends what is left, as far as the collector takes it in time.
    pub async fn stop(self) {
        let Some(Traces { provider, .. }) = self.0 else { return };
        let stopped =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_PATIENCE)).await;
        match stopped {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not sent"),
            Err(error) => tracing::warn!(%error, "the last traces were not sent"),
        }
    }
}

/// The SDK's way out: our own client, on our runtime, because the SDK's thread has none. Plain HTTP, as headcount speaks it.
#[derive(Debug)]
struct Client(Handle);

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: hyper::Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        // The timer, too, is made there.
        let sent = self.0.spawn(async { tokio::time::timeout(PATIENCE, send(request)).await });
        Box::pin(async move { sent.await?? })
    }
}

/// Sends one request on a connection of its own.
async fn send(request: hyper::Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().ok_or("the endpoint names no host")?;
    let address = match authority.port() {
        Some(_) => authority.to_string(),
        None => format!("{authority}:80"),
    };
    head.headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
    head.uri = head.uri.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()));
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(hyper::Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
    connection.abort();
    Ok(Response::from_parts(head, body))
}
