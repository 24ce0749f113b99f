//! The output gate: an outcome is set while deciding and leaves only after the commit.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Refusal;

/// The partition's end of one question. What `set` stores stays here until `release`.
#[derive(Debug)]
pub struct Reply<T> {
    sender: oneshot::Sender<Result<T, Refusal>>,
    outcome: Option<T>,
    afterwards: Option<Afterwards>,
}

/// What is to be done once the gate is open.
struct Afterwards(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Afterwards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Afterwards(…)")
    }
}

/// The caller's end of one question.
#[derive(Debug)]
pub struct Answer<T>(oneshot::Receiver<Result<T, Refusal>>);

/// A connected pair.
#[must_use]
pub fn reply<T>() -> (Reply<T>, Answer<T>) {
    let (sender, receiver) = oneshot::channel();
    (Reply { sender, outcome: None, afterwards: None }, Answer(receiver))
}

impl<T> Reply<T> {
    /// Keeps the outcome behind the gate; a batch that is decided again replaces it.
    pub fn set(&mut self, outcome: T) {
        self.outcome = Some(outcome);
    }

    /// Does this when the gate opens, and never if it does not: for what must not be told before its commit is durable
    /// and is nobody's answer. A batch that is decided again replaces it.
    pub fn then(&mut self, afterwards: impl FnOnce() + Send + 'static) {
        self.afterwards = Some(Afterwards(Box::new(afterwards)));
    }

    /// What waits behind the gate, if anything.
    #[must_use]
    pub fn outcome(&self) -> Option<&T> {
        self.outcome.as_ref()
    }

    /// Opens the gate. A caller that has gone away is no error: its command is decided all the same.
    pub fn release(self) {
        // A workload that leaves a command undecided has a bug; the caller must not read it as done.
        let _gone = self.sender.send(self.outcome.ok_or(Refusal::OutcomeUnknown));
        if let Some(Afterwards(afterwards)) = self.afterwards {
            afterwards();
        }
    }

    /// Answers with an error instead.
    pub fn refuse(self, refusal: Refusal) {
        let _gone = self.sender.send(Err(refusal));
    }
}

impl<T> Answer<T> {
    /// Waits for the answer, at most `limit`.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refusal::OutcomeUnknown`] when no answer came in time.
    pub async fn within(self, limit: Duration) -> Result<T, Refusal> {
        match tokio::time::timeout(limit, self.0).await {
            Ok(Ok(answer)) => answer,
            // Either the partition's thread is gone or it is late: the command may have been done.
            Ok(Err(_)) | Err(_) => Err(Refusal::OutcomeUnknown),
        }
    }
}
