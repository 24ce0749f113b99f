use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[batch]`: how many decisions share one commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Batch {
    /// Most commands in one batch, which is one transaction. 1 to 65,536.
    pub max: usize,
    /// Most commands that one actor gets into a batch while other actors wait. 1 to 65,536; above `max` it is `max`.
    pub max_per_actor: usize,
    /// Microseconds that a batch gathers while the threads of the API are busy, which will bring it more. 0 to
    /// 1,000,000; 0: each batch is what waits when the last one is done.
    pub linger_us: u64,
    /// Commands that end the gathering. 1 to 65,536.
    pub crowd: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { max: 1_024, max_per_actor: 256, linger_us: 2_000, crowd: 128 }
    }
}

impl Batch {
    pub(crate) const KEYS: Keys = &[
        ("max", whole(1, 65_536)),
        ("max_per_actor", whole(1, 65_536)),
        ("linger_us", whole(0, 1_000_000)),
        ("crowd", whole(1, 65_536)),
    ];
}

/// `[mailbox]`: how many commands may wait, and for how long. What finds no room is answered `overloaded` at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mailbox {
    /// Most commands waiting on one partition. 1 to 1,048,576.
    pub capacity: usize,
    /// Most commands waiting on one actor. 1 to 1,048,576, and at most `capacity`.
    pub actor_capacity: usize,
    /// Milliseconds after which a waiting command is dropped undecided. 1 to 600,000, and below
    /// `server.request_timeout_ms`: the caller must hear "surely not done" before it hears of a timeout.
    pub deadline_ms: u64,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self { capacity: 8_192, actor_capacity: 4_096, deadline_ms: 5_000 }
    }
}

impl Mailbox {
    pub(crate) const KEYS: Keys = &[
        ("capacity", whole(1, 1_048_576)),
        ("actor_capacity", whole(1, 1_048_576)),
        ("deadline_ms", whole(1, 600_000)),
    ];
}

/// `[actors]`: what stays in memory between commands. Nothing but speed depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actors {
    /// Milliseconds after which an untouched actor leaves memory. 10 to 86,400,000 (a day).
    pub idle_timeout_ms: u64,
    /// Most actors in memory, a partition and feature. 1 to 10,000,000.
    pub max_resident: usize,
}

impl Default for Actors {
    fn default() -> Self {
        Self { idle_timeout_ms: 300_000, max_resident: 100_000 }
    }
}

impl Actors {
    pub(crate) const KEYS: Keys =
        &[("idle_timeout_ms", whole(10, 86_400_000)), ("max_resident", whole(1, 10_000_000))];
}

/// `[clock]`: how far the wall clock is trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// Milliseconds that the wall clock may be behind the last stored time at a start; further behind refuses the
    /// start. 1 to 86,400,000 (a day).
    pub max_step_ms: u64,
    /// Starts all the same; time then goes on from the stored time, ahead of the clock.
    pub allow_step_back: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self { max_step_ms: 60_000, allow_step_back: false }
    }
}

impl Clock {
    pub(crate) const KEYS: Keys = &[("max_step_ms", whole(1, 86_400_000)), ("allow_step_back", Rule::Switch)];
}
