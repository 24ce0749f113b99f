//! The twins of a binary without traces: they take no room and do nothing.

use axum::http::{HeaderMap, StatusCode};

use super::Error;
use crate::config;
use crate::partition::Refusal;

/// Makes no spans.
#[derive(Debug, Clone)]
pub struct Telemetry;

/// A request that is not traced.
#[derive(Debug)]
pub struct Request;

/// While this lives, nothing is different.
pub(crate) struct Entered;

/// A command of one.
#[derive(Debug)]
pub struct Passage;

/// A batch of those.
#[derive(Debug)]
pub struct Batch;

impl Telemetry {
    /// Nothing to start.
    ///
    /// # Errors
    /// None: the settings refuse an endpoint where nothing could go to it.
    pub fn start(_settings: &config::Telemetry) -> Result<Self, Error> {
        Ok(Self)
    }

    pub(crate) fn off() -> Self {
        Self
    }

    pub(crate) fn request(
        &self,
        _headers: &HeaderMap,
        _method: &'static str,
        _route: Option<&str>,
    ) -> Request {
        Request
    }

    /// Nothing to stop.
    pub async fn stop(self) {}
}

impl Request {
    pub(crate) fn enter(&self) -> Entered {
        Entered
    }

    pub(crate) fn answered(&self, _status: StatusCode) {}
}

impl Passage {
    pub(crate) fn begin() -> Self {
        Self
    }

    pub(crate) fn expired(self, _partition: u32) {}
}

impl Batch {
    pub(crate) fn of(_partition: u32) -> Self {
        Self
    }

    pub(crate) fn take(&mut self, _passage: Passage) {}

    pub(crate) fn decides(&mut self, _commands: usize) {}

    pub(crate) fn commits(&mut self) {}

    pub(crate) fn committed(&mut self) -> Self {
        Self
    }

    pub(crate) fn ends(&mut self, _outcome: Result<(), Refusal>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_take_no_room() {
        let sizes = [size_of::<Telemetry>(), size_of::<Request>(), size_of::<Passage>(), size_of::<Batch>()];
        assert_eq!(sizes, [0; 4]);
    }
}
