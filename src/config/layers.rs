//! The four layers and how they become one [`Config`]: defaults <- file <- environment <- flags.

use std::{collections::BTreeMap, env, fmt, fs, io, path::Path, path::PathBuf};

use toml::{Table, Value};

use super::rule::join;
use super::{Config, ConfigError, Problem, Source};

/// The file that is read when no other is asked for, from the working directory.
pub const DEFAULT_FILE: &str = "config/headcount.toml";

/// What a variable's name begins with; a double underscore also stands between the levels that follow.
const VARIABLE_PREFIX: &str = "HEADCOUNT__";

/// Which settings file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChoice {
    /// [`DEFAULT_FILE`] if it exists, else none: the binary alone is enough to start.
    Default,
    /// This file, which must exist.
    Explicit(PathBuf),
}

impl From<Option<PathBuf>> for FileChoice {
    fn from(path: Option<PathBuf>) -> Self {
        path.map_or(Self::Default, Self::Explicit)
    }
}

/// A setting given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// As it is typed, for errors and the log: `--listen`.
    pub name: &'static str,
    /// The setting that it sets: `server.listen`.
    pub key: &'static str,
    /// Read like the value of a variable.
    pub value: String,
}

/// Checked settings, and where they came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings in force.
    pub config: Config,
    /// Where they came from.
    pub sources: Sources,
}

impl Loaded {
    /// An error like those of this module, for a check that only the user of a setting can make (the cron text of
    /// `rollup.schedule`). `why` says what is allowed: "must be ...".
    pub fn refuse(&self, key: &str, why: impl fmt::Display) -> ConfigError {
        let source = self.sources.of(key);
        let settings = Value::try_from(&self.config).ok();
        let value = key.split('.').try_fold(settings.as_ref(), |at, name| Some(at?.get(name))).flatten();
        let problem = match value {
            Some(value) => Problem::value(&source, key, value, why),
            None => Problem::key(&source, key, why),
        };
        ConfigError::Refused(vec![problem])
    }
}

/// Which file, variables and flags took part, and what each set last. Displays as one line for the start-up log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    layers: Vec<Source>,
    origins: BTreeMap<String, Source>,
}

impl Sources {
    /// Every source that was read, the weakest first; the defaults, which always take part, are not listed.
    pub fn layers(&self) -> &[Source] {
        &self.layers
    }

    /// Where the value of this dotted key came from. An entry of a list came with its list.
    pub fn of(&self, key: &str) -> Source {
        let list = key.split_once('[').map_or(key, |(list, _)| list);
        self.origins.get(list).cloned().unwrap_or(Source::BuiltIn)
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("built-in defaults")?;
        self.layers.iter().try_for_each(|layer| write!(f, ", {layer}"))
    }
}

impl Config {
    /// Lays the file, the variables (others than `HEADCOUNT__...` are ignored; see [`environment`]) and the flags over
    /// the defaults, in this order.
    ///
    /// # Errors
    /// The file cannot be read or is no TOML; else every setting that is unknown or not allowed, in any layer; else
    /// every rule between settings that is broken.
    pub fn load(
        file: FileChoice,
        env: impl Iterator<Item = (String, String)>,
        flags: &[Flag],
    ) -> Result<Loaded, ConfigError> {
        let mut layers = Vec::from_iter(file_layer(file)?);
        layers.extend(variable_layers(env)?);
        layers.extend(flags.iter().map(flag_layer));

        let mut problems = Vec::new();
        for layer in &layers {
            Config::RULE.check(&layer.source, "", &layer.settings, &mut problems);
        }
        ConfigError::unless_empty(problems)?;

        let mut merged = Table::new();
        let mut sources = Sources::default();
        for Layer { source, settings } in layers {
            lay_over(&mut merged, settings, "", &source, &mut sources.origins);
            sources.layers.push(source);
        }
        let config = typed(merged, &sources)?;
        ConfigError::unless_empty(config.conflicts(&sources))?;
        Ok(Loaded { config, sources })
    }
}

/// The variables of this process that are settings. One that is no UTF-8 is passed on with replacement characters, to
/// be refused by name where it matters, instead of being skipped without a word.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(VARIABLE_PREFIX))
}

/// What is wrong with variables that look like settings and are passed over: one underscore where two belong.
pub fn misspelt_variables() -> Vec<String> {
    env::vars_os().filter_map(|(name, _)| misspelt(&name.to_string_lossy())).collect()
}

fn misspelt(name: &str) -> Option<String> {
    let rest = name.strip_prefix("HEADCOUNT_").filter(|rest| !rest.starts_with('_'))?;
    let (section, key) = rest.split_once('_')?;
    Config::RULE.find(&[section.to_ascii_lowercase()])?;
    let meant = format!("{VARIABLE_PREFIX}{section}__{}", key.trim_start_matches('_')).to_ascii_uppercase();
    Some(format!("{name} is no setting and is passed over: two underscores each time, {meant}"))
}

/// What one source says: always a table, shaped like the whole settings.
struct Layer {
    source: Source,
    settings: Value,
}

fn file_layer(choice: FileChoice) -> Result<Option<Layer>, ConfigError> {
    match choice {
        FileChoice::Default => read_file(PathBuf::from(DEFAULT_FILE), true),
        FileChoice::Explicit(path) => read_file(path, false),
    }
}

fn read_file(path: PathBuf, may_be_missing: bool) -> Result<Option<Layer>, ConfigError> {
    match fs::read_to_string(&path) {
        Ok(text) => {
            let table = text.parse::<Table>().map_err(|error| syntax(&path, &text, &error))?;
            Ok(Some(Layer { source: Source::File(path), settings: Value::Table(table) }))
        }
        Err(error) if may_be_missing && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError::Unreadable { path, error }),
    }
}

/// Takes the message alone: the library's own display repeats the line, which may hold a digest.
fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ConfigError::Syntax {
        path: path.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: error.message().replace('\n', ", "),
    }
}

/// A layer for each variable, in the order of their names, so that a start does not depend on the order of the
/// environment.
fn variable_layers(env: impl Iterator<Item = (String, String)>) -> Result<Vec<Layer>, ConfigError> {
    let (mut layers, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in BTreeMap::from_iter(env) {
        let Some(levels) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
        let path: Vec<String> = levels.split("__").map(str::to_ascii_lowercase).collect();
        // Two spellings of one variable would compete.
        if levels.contains(|letter: char| letter.is_ascii_lowercase()) {
            let why = format_args!("is set in upper case: {}", name.to_ascii_uppercase());
            problems.push(Problem::key(&Source::Environment(name.clone()), &path.join("."), why));
        }
        layers.push(single(Source::Environment(name), &path, &value));
    }
    ConfigError::unless_empty(problems)?;
    Ok(layers)
}

fn flag_layer(flag: &Flag) -> Layer {
    let path: Vec<String> = flag.key.split('.').map(str::to_owned).collect();
    single(Source::Flag(flag.name), &path, &flag.value)
}

/// A layer of one setting. Nobody reads the value of an unknown one, so it may stay text.
fn single(source: Source, path: &[String], text: &str) -> Layer {
    let value =
        Config::RULE.find(path).map_or_else(|| Value::String(text.to_owned()), |rule| rule.read(text));
    let nest = |inner, name: &String| Value::Table(Table::from_iter([(name.clone(), inner)]));
    Layer { source, settings: path.iter().rev().fold(value, nest) }
}

/// Lays checked settings over `base`: sections are merged, values (lists too) replaced.
fn lay_over(
    base: &mut Table,
    settings: Value,
    at: &str,
    source: &Source,
    origins: &mut BTreeMap<String, Source>,
) {
    let Value::Table(settings) = settings else { return };
    for (name, value) in settings {
        let key = join(at, &name);
        if value.is_table() {
            if let Value::Table(section) = base.entry(name).or_insert_with(|| Value::Table(Table::new())) {
                lay_over(section, value, &key, source, origins);
            }
        } else {
            origins.insert(key, source.clone());
            base.insert(name, value);
        }
    }
}

/// Cannot fail after the rules have passed, unless a rule allows what its setting's type does not hold.
fn typed(merged: Table, sources: &Sources) -> Result<Config, ConfigError> {
    serde_path_to_error::deserialize(Value::Table(merged)).map_err(|error| {
        let key = error.path().to_string();
        let why = format_args!("cannot be used: {}", error.inner().message());
        ConfigError::Refused(vec![Problem::key(&sources.of(&key), &key, why)])
    })
}

#[cfg(test)]
mod tests;
