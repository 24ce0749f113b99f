use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[log]`: what is logged, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The least severe level that is logged.
    pub level: LogLevel,
    /// The shape of a line.
    pub format: LogFormat,
    /// Logs a line a decision, whatever the level.
    pub decisions: bool,
    /// Lines that wait for a slow reader of the log; more are dropped and counted, for a log must not slow a decision.
    /// 1 to 1,048,576.
    pub queue_lines: usize,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Auto, decisions: true, queue_lines: 65_536 }
    }
}

impl Log {
    pub(crate) const KEYS: Keys = &[
        ("level", Rule::Word(&["error", "warn", "info", "debug", "trace"])),
        ("format", Rule::Word(&["auto", "json", "human"])),
        ("decisions", Rule::Switch),
        ("queue_lines", whole(1, 1_048_576)),
    ];
}

/// How severe a line is, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only failures.
    Error,
    /// And what may become one.
    Warn,
    /// And what happens.
    Info,
    /// And how.
    Debug,
    /// And every step.
    Trace,
}

/// The shape of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text where standard error is a terminal, JSON elsewhere.
    Auto,
    /// One JSON object a line.
    Json,
    /// Text for a terminal.
    Human,
}
