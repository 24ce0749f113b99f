//! Every setting of headcount, and how a start arrives at its value.
//!
//! Four layers, each over the one before: the defaults in `settings`, the TOML file, `HEADCOUNT__SECTION__KEY`
//! variables, flags. Each layer is checked by itself against the rules that stand beside the settings (`rule`), so a
//! refused value is blamed on the file, variable or flag that brought it, even when a later layer would have covered
//! it. Only then are they laid over each other (`layers`) and the rules between settings applied (`validate`).
//! A start with a setting that is unknown or out of bounds is refused: a typo must not pass for a default.

mod layers;
mod problem;
mod rule;
mod settings;
mod validate;

pub use layers::{DEFAULT_FILE, FileChoice, Flag, Loaded, Sources, environment, misspelt_variables};
pub use problem::{ConfigError, Problem, Source};
pub use rule::address;
pub use settings::*;
