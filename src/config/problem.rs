//! What is wrong with a setting, and where it came from, in one readable line.

use std::{fmt, io, path::PathBuf};

use toml::Value;

/// Where the value of a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The defaults of this program, or a [`Config`](super::Config) built by hand.
    BuiltIn,
    /// A TOML file.
    File(PathBuf),
    /// An environment variable, by its full name.
    Environment(String),
    /// A flag of the command line, as it is typed: `--listen`.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::BuiltIn => f.write_str("built-in"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Environment(name) => write!(f, "environment {name}"),
            Source::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One refused setting: who brought it, its full dotted path, and what is allowed instead. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What brought the value.
    pub source: Source,
    /// The dotted path, with an index for a list: `auth.keys[0].name`.
    pub key: String,
    /// Continues the line after the key, its own punctuation first: ` = 0: must be ...`.
    rest: String,
}

impl Problem {
    /// The value itself is refused; `why` says what would be allowed ("must be ...").
    pub(super) fn value(source: &Source, key: &str, value: &Value, why: impl fmt::Display) -> Self {
        Self::new(source, key, format!(" = {}: {why}", shown(value)))
    }

    /// The key is refused whatever its value, or its value is nothing to show; `why` follows it as a verb phrase.
    pub(super) fn key(source: &Source, key: &str, why: impl fmt::Display) -> Self {
        Self::new(source, key, format!(" {why}"))
    }

    fn new(source: &Source, key: &str, rest: String) -> Self {
        Self { source: source.clone(), key: key.to_owned(), rest }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.source, self.key, self.rest)
    }
}

/// Why the settings cannot be used; the start stops.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file is there (or was asked for) and cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The operating system's words.
        error: io::Error,
    },

    /// The settings file is no TOML. Lines and columns count from 1.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The parser's words.
        message: String,
    },

    /// Settings are refused: every problem found, a line each.
    #[error("{}", one_a_line(.0))]
    Refused(Vec<Problem>),
}

impl ConfigError {
    /// Whether there is anything to refuse.
    pub(super) fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self::Refused(problems)) }
    }
}

fn one_a_line(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// Longest text shown of a value, in characters: a line stays readable, and a SHA-256 put where it does not belong
/// (64 digits) is never shown whole.
const SHOWN_CHARS: usize = 48;

/// Most items shown of a list.
const SHOWN_ITEMS: usize = 4;

/// A value as an error shows it: short, and on one line whatever it holds.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > SHOWN_CHARS => {
            format!("{:?}…", text.chars().take(SHOWN_CHARS).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let more = if items.len() > SHOWN_ITEMS { ", …" } else { "" };
            format!("[{}{more}]", items.iter().take(SHOWN_ITEMS).map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Table(_) => "{…}".to_owned(),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_whatever_the_value_holds() {
        let source = Source::File("headcount.toml".into());
        let line = |value| Problem::value(&source, "log.level", &value, "must be a word").to_string();
        assert_eq!(line(Value::Integer(0)), "headcount.toml: log.level = 0: must be a word");
        assert_eq!(
            line(Value::String("a\nb".into())),
            r#"headcount.toml: log.level = "a\nb": must be a word"#
        );
        assert_eq!(line(vec!["a"; 2].into()), r#"headcount.toml: log.level = ["a", "a"]: must be a word"#);
        assert_eq!(line(vec![1; 5].into()), "headcount.toml: log.level = [1, 1, 1, 1, …]: must be a word");
        let long = line(Value::String("f".repeat(64)));
        assert!(long.contains(&"f".repeat(SHOWN_CHARS)) && !long.contains(&"f".repeat(SHOWN_CHARS + 1)));
    }
}
