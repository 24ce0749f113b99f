//! Streams of end users: each has a place among its user's, and ends with its token.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::auth::streams::Place;

/// What a stream of an end user goes on by. Dropped, its place is free again.
#[derive(Debug)]
pub(super) struct Stay {
    end: Pin<Box<Sleep>>,
    _place: Place,
}

impl Stay {
    /// For so long, from now on.
    pub(super) fn new(life: Duration, place: Place) -> Self {
        Self { end: Box::pin(tokio::time::sleep(life)), _place: place }
    }

    /// Waits until the token has ended.
    pub(super) async fn ended(&mut self) {
        self.end.as_mut().await;
    }

    /// The same. Not to be asked again once it is ready.
    pub(super) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.end.as_mut().poll(context)
    }
}

/// Waits until a stream's token has ended, if it has one; else forever.
pub(super) async fn token_ended(stay: &mut Option<Stay>) {
    match stay {
        Some(stay) => stay.ended().await,
        None => std::future::pending().await,
    }
}
