//! What a store must do. Every write is durable before its future is done.

use std::future::Future;

use crate::Failure;

/// The two jobs.
pub trait Store: Clone + Send + Sync + 'static {
    /// Makes `user` one of those who like `item`. Whether it was not before.
    fn like(&self, item: String, user: String) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// How many users like `item`, exactly.
    fn total(&self, item: String) -> impl Future<Output = Result<i64, Failure>> + Send;

    /// Takes `seats` seats under the id `request`, or repeats what was decided for it first.
    fn reserve(
        &self,
        workshop: String,
        request: String,
        seats: i32,
    ) -> impl Future<Output = Result<Decision, Failure>> + Send;

    /// What a workshop has decided so far.
    fn status(&self, workshop: String) -> impl Future<Output = Result<Status, Failure>> + Send;
}

/// The answer to a request for seats.
#[derive(Debug)]
pub struct Decision {
    /// The seats that the id was first used with.
    pub seats: i32,
    pub accepted: bool,
    pub capacity: i32,
    /// Seats taken just after the decision.
    pub reserved: i32,
    pub replayed: bool,
}

/// A workshop's counts.
#[derive(Debug)]
pub struct Status {
    pub capacity: i32,
    pub reserved: i32,
    pub accepted_requests: i64,
    pub rejected_requests: i64,
}
