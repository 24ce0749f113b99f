//! What a command may take.

use std::fmt;

use serde::Deserialize;

use crate::Failure;
use crate::work::Kind;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/budget.toml");
/// Another compiler or processor counts a little differently.
const TOLERANCE_PERCENT: u64 = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    like: u64,
    reservation: u64,
}

pub enum Verdict {
    Kept,
    /// The file should say less.
    Below,
    Exceeded,
}

impl Budget {
    pub fn read() -> Result<Self, Failure> {
        let text = std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
        Ok(toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?)
    }

    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Like => self.like,
            Kind::Reservation => self.reservation,
        }
    }

    pub fn verdict(&self, kind: Kind, instructions: u64) -> Verdict {
        let budget = self.of(kind);
        let tolerance = budget * TOLERANCE_PERCENT / 100;
        match instructions {
            more if more > budget + tolerance => Verdict::Exceeded,
            less if less + tolerance < budget => Verdict::Below,
            _ => Verdict::Kept,
        }
    }
}

impl Verdict {
    pub fn keeps(&self) -> bool {
        !matches!(self, Self::Exceeded)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Below => "kept; lower it in budget.toml",
            Self::Exceeded => "EXCEEDED",
        })
    }
}
