//! The spans of a partition. Times are noted while a batch is on its way, and spans made of them when it is over: on the
//! thread that syncs, and not on the one that decides.

use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{Span, SpanBuilder, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace;

use super::request::{Traced, current};
use crate::partition::Refusal;

const PARTITION: &str = "headcount.partition";

/// A command's place in the trace of the request that it is of, if that is traced.
#[derive(Debug)]
pub struct Passage(Option<Box<Queued>>);

#[derive(Debug)]
struct Queued {
    request: Arc<Traced>,
    since: SystemTime,
}

/// What happens to a batch, for the traces of its commands.
#[derive(Debug)]
pub struct Batch {
    partition: u32,
    /// Of the commands that are traced; without any, no time is noted.
    #[expect(clippy::vec_box, reason = "they come boxed")]
    queued: Vec<Box<Queued>>,
    commands: usize,
    taken: Option<SystemTime>,
    committing: Option<SystemTime>,
    committed: Option<SystemTime>,
}

impl Passage {
    /// Begins where a command is queued, by the request whose handler runs on this thread.
    pub(crate) fn begin() -> Self {
        Self(current().map(|request| Box::new(Queued { request, since: SystemTime::now() })))
    }

    /// Its command waited too long and is not decided.
    pub(crate) fn expired(self, partition: u32) {
        if let Some(queued) = self.0 {
            let mut span = queued.mailbox(partition);
            span.set_status(Status::error(Refusal::Overloaded.to_string()));
        }
    }
}

impl Batch {
    /// The next one of a partition.
    pub(crate) fn of(partition: u32) -> Self {
        let queued = Vec::new();
        Self { partition, queued, commands: 0, taken: None, committing: None, committed: None }
    }

    /// A command is taken out of the mailbox.
    pub(crate) fn take(&mut self, passage: Passage) {
        if let Some(queued) = passage.0 {
            self.taken.get_or_insert_with(SystemTime::now);
            self.queued.push(queued);
        }
    }

    /// So many commands are decided together.
    pub(crate) fn decides(&mut self, commands: usize) {
        self.commands = commands;
    }

    /// They are decided, and what changed is saved.
    pub(crate) fn commits(&mut self) {
        if self.is_traced() {
            self.committing = Some(SystemTime::now());
        }
    }

    /// They are committed. What was noted goes on to the thread that syncs, and the next batch begins.
    pub(crate) fn committed(&mut self) -> Self {
        if self.is_traced() {
            self.committed = Some(SystemTime::now());
        }
        std::mem::replace(self, Self::of(self.partition))
    }

    /// They are durable, or refused. Writes the spans down.
    pub(crate) fn ends(&mut self, outcome: Result<(), Refusal>) {
        let now = SystemTime::now();
        let batch = std::mem::replace(self, Self::of(self.partition));
        for queued in &batch.queued {
            batch.write_down(queued, outcome, now);
        }
    }

    fn is_traced(&self) -> bool {
        !self.queued.is_empty()
    }

    fn write_down(&self, queued: &Queued, outcome: Result<(), Refusal>, now: SystemTime) {
        let taken = self.taken.unwrap_or(now);
        queued.mailbox(self.partition).end_with_timestamp(taken);
        let commands = i64::try_from(self.commands).unwrap_or(i64::MAX);
        let about = [
            KeyValue::new(PARTITION, i64::from(self.partition)),
            KeyValue::new("headcount.batch.commands", commands),
        ];
        let mut span = queued.request.span("batch", taken, &queued.request.context, about);
        if let Err(refusal) = outcome {
            span.set_status(Status::error(refusal.to_string()));
        }
        let batch = queued.request.context.with_span(span);
        let below = |name, from: Option<SystemTime>, to: Option<SystemTime>| {
            if let Some(from) = from {
                queued.request.span(name, from, &batch, []).end_with_timestamp(to.unwrap_or(now));
            }
        };
        below("commit", self.committing, self.committed);
        below("sync", self.committed, None);
        batch.span().end_with_timestamp(now);
    }
}

impl Queued {
    fn mailbox(&self, partition: u32) -> trace::Span {
        let about = [KeyValue::new(PARTITION, i64::from(partition))];
        self.request.span("mailbox", self.since, &self.request.context, about)
    }
}

impl Traced {
    fn span<const N: usize>(
        &self,
        name: &'static str,
        from: SystemTime,
        parent: &Context,
        about: [KeyValue; N],
    ) -> trace::Span {
        let span = SpanBuilder::from_name(name).with_start_time(from).with_attributes(about);
        self.tracer.build_with_context(span, parent)
    }
}
