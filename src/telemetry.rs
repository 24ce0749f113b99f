//! Traces: one request as a tree of spans, from its head to the disk, for a collector that speaks OpenTelemetry (OTLP over
//! HTTP).
//!
//! A request's span is on its thread's record while its handler runs; a command that is queued then takes it along
//! ([`Passage`]), and the partition notes the times of its [`Batch`]. When that is over, its spans are written down: `mailbox`
//! and `batch` below the request, `commit` and `sync` below the batch. No span has a name of anybody or anything in it.
//!
//! All of this is there with the feature `otel` alone. Without it every type is empty and every call does nothing; with it,
//! and without `telemetry.otlp_endpoint`, a call looks at an empty option.

#[cfg(feature = "otel")]
mod batch;
#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
mod off;
#[cfg(feature = "otel")]
mod request;

#[cfg(feature = "otel")]
pub use self::{
    batch::{Batch, Passage},
    export::Telemetry,
    request::Request,
};
#[cfg(not(feature = "otel"))]
pub use off::{Batch, Passage, Request, Telemetry};

/// Why traces cannot go anywhere.
#[derive(Debug, thiserror::Error)]
#[error("telemetry.otlp_endpoint: {0}")]
pub struct Error(pub String);
