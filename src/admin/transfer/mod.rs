//! Likes in and out of a data directory: `headcount import` ([`import`]) and `headcount export` ([`export`]), a row a line
//! ([`rows`]).

pub mod export;
pub mod import;
pub mod rows;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `item,user,when`, or `item,count` of base counts, with a header or without it
    Csv,
    /// `{"item": …, "user": …, "when": …}`, or `{"item": …, "count": …}`
    Ndjson,
}

/// What both commands are told.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The file; `-` is standard input of an import, standard output of an export
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// How rows are written [default: what the file's name ends with, csv without a name]
    #[arg(long)]
    pub format: Option<Format>,
    /// Base counts, likes without members, instead of likes
    #[arg(long)]
    pub base: bool,
    /// The data directory [default: the settings' storage.data_dir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    pub config: Option<PathBuf>,
}

impl Which {
    /// The format that is meant.
    #[must_use]
    pub fn format(&self) -> Format {
        let by_name = || match self.file.extension().and_then(|end| end.to_str()) {
            Some("ndjson" | "jsonl" | "json") => Format::Ndjson,
            _ => Format::Csv,
        };
        self.format.unwrap_or_else(by_name)
    }

    fn is_standard(&self) -> bool {
        self.file == Path::new("-")
    }
}
