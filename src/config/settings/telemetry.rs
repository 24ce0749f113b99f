use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule};

/// `[telemetry]`: where traces go. Only a binary that was built with the feature `otel` has any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// A collector that takes OTLP over HTTP, without its path (`/v1/traces` is added); absent: no traces.
    pub otlp_endpoint: Option<String>,
    /// How many of the requests are traced whose callers do not say whether they are: 0 none, 1 all.
    pub sample_ratio: f64,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_ratio: 0.01 }
    }
}

impl Telemetry {
    pub(crate) const KEYS: Keys = &[("otlp_endpoint", Rule::HttpAddress), ("sample_ratio", Rule::Ratio)];
}
