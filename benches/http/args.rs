//! The flags of the bench, parsed by hand.

use std::path::PathBuf;
use std::time::Duration;

use crate::Failure;
use crate::compare;
use crate::generator::Length;
use crate::plan::Shape;
use crate::sides::{SIDES, Side};

pub const HELP: &str = "\
Usage: cargo bench --bench http -- [FLAGS]

  --rounds N        rounds, in each of which every side runs once (3)
  --seconds S       measured seconds a run, may be a fraction (5)
  --requests N      measured requests a run, instead of --seconds
  --warm-up S       seconds before measuring (1)
  --connections N   keep-alive connections, one request in flight each (256); streams of lines are always 8, with 512
                    lines in flight each
  --threads N       threads of the load generator (1)
  --only A,B        only these sides, or families of them (noop: noop-likes and noop-reservations)
  --expiry N        instead of all that: what one workshop notices while N holds of another one end in the same second
  --flood N         instead: what other workshops notice while N connections flood one of them
  --scale N         instead: N likes of N/10 items imported, read, liked, rolled up, watched, audited and moved, beside an
                    empty service
  --workshops N     instead: how soon a service over N workshops is there, and what the first touch of one costs
  --dir DIR         where the data directories are made (the system's temporary directory)
  --compare ...     instead: headcount beside PostgreSQL, Redis and Durable Objects; `--compare --help` lists its own flags,
                    and `benches/compare` installs and builds what it needs

Environment: HEADCOUNT_BIN, the server to measure, if not the one that cargo built.
";

/// What the executable was started for.
pub enum Command {
    Measure(Settings),
    /// So many holds that end together.
    Expiry(u64, Settings),
    /// So many connections on one workshop.
    Flood(usize, Settings),
    /// So many stored likes.
    Scale(u64, Settings),
    /// So many stored workshops.
    Workshops(u64, Settings),
    /// All sides beside the alternatives.
    Compare(compare::Settings),
    /// A child that is the bare axum program, on this port.
    Bare(u16),
    /// A child that is the canned responder, on this port.
    Echo(u16),
    Help,
}

#[derive(Clone)]
pub struct Settings {
    pub rounds: usize,
    pub length: Length,
    pub warm_up: Duration,
    pub connections: usize,
    pub threads: usize,
    pub dir: PathBuf,
    pub sides: Vec<&'static Side>,
}

impl Settings {
    fn full() -> Self {
        Self {
            rounds: 3,
            length: Length::Time(Duration::from_secs(5)),
            warm_up: Duration::from_secs(1),
            connections: 256,
            threads: 1,
            dir: std::env::temp_dir(),
            sides: SIDES.iter().collect(),
        }
    }

    /// The load of a run.
    pub fn shape(&self) -> Shape {
        Shape {
            connections: self.connections,
            threads: self.threads,
            warm_up: self.warm_up,
            length: self.length,
            pace: None,
        }
    }

    /// Long enough to see that everything works and adds up, too short to measure.
    fn smoke() -> Self {
        let length = Length::Time(Duration::from_millis(200));
        Self { rounds: 1, length, warm_up: Duration::from_millis(50), connections: 16, ..Self::full() }
    }
}

/// Reads the arguments after the program's name. `cargo bench` always passes `--bench`, which says nothing; no argument
/// at all means `cargo test --all-targets`, which gets a smoke run.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, Failure> {
    let Some(first) = args.next() else {
        return Ok(Command::Measure(Settings::smoke()));
    };
    let mut settings = Settings::full();
    let mut args = std::iter::once(first).chain(args);
    let (mut expiry, mut flood, mut scale, mut workshops) = (None, None, None, None);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--bench" => {}
            "--bare" => return Ok(Command::Bare(value()?.parse()?)),
            "--echo" => return Ok(Command::Echo(value()?.parse()?)),
            "--compare" => return compare::Settings::parse(args),
            "--help" | "-h" => return Ok(Command::Help),
            "--rounds" => settings.rounds = within(&flag, value()?.parse()?, 1, 100)?,
            "--seconds" => settings.length = Length::Time(seconds(&flag, &value()?, 0.05)?),
            "--requests" => {
                settings.length = Length::Requests(within(&flag, value()?.parse()?, 1, 100_000_000)?)
            }
            "--warm-up" => settings.warm_up = seconds(&flag, &value()?, 0.0)?,
            "--connections" => settings.connections = within(&flag, value()?.parse()?, 1, 8192)?,
            "--threads" => settings.threads = within(&flag, value()?.parse()?, 1, 64)?,
            "--expiry" => expiry = Some(within(&flag, value()?.parse()?, 1_000, 1_000_000)?),
            "--flood" => flood = Some(within(&flag, value()?.parse()?, 1, 8192)?),
            "--scale" => scale = Some(within(&flag, value()?.parse()?, 1_000_000, 50_000_000)?),
            "--workshops" => workshops = Some(within(&flag, value()?.parse()?, 10_000, 10_000_000)?),
            "--dir" => settings.dir = value()?.into(),
            "--only" => settings.sides = only(&value()?)?,
            _ => return Err(format!("unknown flag {flag}; --help lists them").into()),
        }
    }
    Ok(match (expiry, flood, scale, workshops) {
        (Some(holds), ..) => Command::Expiry(holds, settings),
        (_, Some(connections), ..) => Command::Flood(connections, settings),
        (.., Some(likes), _) => Command::Scale(likes, settings),
        (.., Some(workshops)) => Command::Workshops(workshops, settings),
        _ => Command::Measure(settings),
    })
}

pub fn within<T: PartialOrd + std::fmt::Display>(
    flag: &str,
    value: T,
    least: T,
    most: T,
) -> Result<T, Failure> {
    if value < least || value > most {
        return Err(format!("{flag} is {value}, outside {least} to {most}").into());
    }
    Ok(value)
}

pub fn seconds(flag: &str, value: &str, least: f64) -> Result<Duration, Failure> {
    Ok(Duration::from_secs_f64(within(flag, value.parse()?, least, 600.0)?))
}

fn only(list: &str) -> Result<Vec<&'static Side>, Failure> {
    let words: Vec<&str> = list.split(',').map(str::trim).collect();
    let is = |side: &Side, word: &str| side.name == word || side.name.split('-').next() == Some(word);
    if let Some(word) = words.iter().find(|word| !SIDES.iter().any(|side| is(side, word))) {
        let known: Vec<_> = SIDES.iter().map(|side| side.name).collect();
        return Err(format!("--only {word}: the sides are {}", known.join(", ")).into());
    }
    Ok(SIDES.iter().filter(|side| words.iter().any(|word| is(side, word))).collect())
}
