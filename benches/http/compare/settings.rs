//! The flags of the comparison.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Failure;
use crate::args::{Command, seconds, within};

const HELP: &str = "\
Usage: benches/compare [FLAGS], or cargo bench --bench http -- --compare [FLAGS] where all is installed and built

  --quick           short runs, one round and fewer connections: whether all works and adds up
  --rounds N        rounds, in each of which every side runs once (3)
  --seconds S       measured seconds a run in closed loop (1)
  --paced S         measured seconds a run at a pace (2)
  --warm-up S       seconds before measuring (0.3)
  --connections A,B numbers of connections in closed loop (1,64,256,1024); the bars are read at 256, and so is the pace
  --workloads A,B   only these: likes-hot, likes-zipf, reservations-hot, reservations-full, reservations-many, reads, mixed
  --sides A,B       only these: headcount, no-op, bare, echo, redis, postgres, postgres-16, workerd
  --dir DIR         where the data directories are made (the system's temporary directory)
  --out DIR         where report.md, runs.csv and the plots go (target/compare)
";

/// What is measured, and how long.
pub struct Settings {
    pub is_quick: bool,
    pub rounds: usize,
    pub length: Duration,
    pub paced_length: Duration,
    pub warm_up: Duration,
    pub connections: Vec<usize>,
    /// Empty for all.
    pub workloads: Vec<String>,
    /// Empty for all.
    pub sides: Vec<String>,
    pub dir: PathBuf,
    pub out: PathBuf,
}

impl Settings {
    /// Reads what follows `--compare`.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Command, Failure> {
        let args: Vec<String> = args.filter(|arg| arg != "--bench").collect();
        let mut settings = Self::full();
        if args.iter().any(|arg| arg == "--quick") {
            settings = Self::quick();
        }
        let mut args = args.into_iter().filter(|arg| arg != "--quick");
        while let Some(flag) = args.next() {
            if flag == "--help" || flag == "-h" {
                print!("{HELP}");
                std::process::exit(0);
            }
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--rounds" => settings.rounds = within(&flag, value.parse()?, 1, 100)?,
                "--seconds" => settings.length = seconds(&flag, &value, 0.05)?,
                "--paced" => settings.paced_length = seconds(&flag, &value, 0.05)?,
                "--warm-up" => settings.warm_up = seconds(&flag, &value, 0.0)?,
                "--connections" => {
                    let numbers =
                        value.split(',').map(|number| within(&flag, number.trim().parse()?, 1, 8192));
                    settings.connections = numbers.collect::<Result<_, _>>()?;
                }
                "--workloads" => settings.workloads = words(&value),
                "--sides" => settings.sides = words(&value),
                "--dir" => settings.dir = value.into(),
                "--out" => settings.out = value.into(),
                _ => return Err(format!("unknown flag {flag}; --compare --help lists them").into()),
            }
        }
        Ok(Command::Compare(settings))
    }

    fn full() -> Self {
        Self {
            is_quick: false,
            rounds: 3,
            length: Duration::from_secs(1),
            paced_length: Duration::from_secs(2),
            warm_up: Duration::from_millis(300),
            connections: vec![1, 64, 256, 1024],
            workloads: Vec::new(),
            sides: Vec::new(),
            dir: std::env::temp_dir(),
            out: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/compare"),
        }
    }

    fn quick() -> Self {
        Self {
            is_quick: true,
            rounds: 1,
            length: Duration::from_millis(400),
            paced_length: Duration::from_millis(400),
            warm_up: Duration::from_millis(100),
            connections: vec![16, 256],
            ..Self::full()
        }
    }

    /// Whether the workload and the side are among the chosen ones.
    pub fn chooses(&self, workload: &str, side: &str) -> bool {
        let among = |words: &[String], word| words.is_empty() || words.iter().any(|known| known == word);
        among(&self.workloads, workload) && among(&self.sides, side)
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',').map(|word| word.trim().to_owned()).collect()
}
