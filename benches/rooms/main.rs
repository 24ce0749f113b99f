//! Broadcast: headcount's rooms beside a bare loop over the same WebSocket library, in the same run.
//!
//! `cargo bench --bench rooms`, or `-- --seconds 2 --rounds 1` for a look. A message is 100 bytes of text, raw
//! both ways; every delivery is counted and timed, and at the end of a run every socket must have got every
//! message. The readers share the machine with the server.

mod bare;
mod listeners;
mod servers;

use std::process::ExitCode;
use std::time::Duration;

use listeners::{Outcome, Shape};
use servers::{Kind, Server};

/// A bench has one thing to do with an error: print it and exit 1.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One room of a thousand, and a hundred of a hundred.
const SHAPES: [Shape; 2] = [Shape { rooms: 1, sockets: 1_000 }, Shape { rooms: 100, sockets: 100 }];

struct Settings {
    seconds: u64,
    rounds: usize,
    /// Messages of one room on their way at a time. With one, nothing can be gathered: each message is written to
    /// each socket by itself, on both sides. With more, what waits for a socket goes out in one call.
    windows: Vec<usize>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("--bare") => {
            bare::serve(arguments.get(1).and_then(|port| port.parse().ok()).unwrap_or_default())
        }
        _ => parse(&arguments).and_then(|settings| measure(&settings)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rooms bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Settings, Failure> {
    let mut settings = Settings { seconds: 5, rounds: 3, windows: vec![1, 4] };
    let mut arguments = arguments.iter().filter(|argument| *argument != "--bench");
    while let Some(name) = arguments.next() {
        let value: u64 = arguments.next().ok_or("a number is missing")?.parse()?;
        match name.as_str() {
            "--seconds" => settings.seconds = value,
            "--rounds" => settings.rounds = usize::try_from(value)?,
            "--window" => settings.windows = vec![usize::try_from(value)?],
            other => return Err(format!("{other}: --seconds, --rounds, --window").into()),
        }
    }
    Ok(settings)
}

fn measure(settings: &Settings) -> Result<(), Failure> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    println!(
        "{} rounds of {} s, 100 bytes a message; medians; in flight: messages of a room on their way at a time\n",
        settings.rounds, settings.seconds
    );
    println!(
        "| rooms x sockets | in flight | server | deliveries/s | p50 ms | p99 ms | a CPU second of the server | beside |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|");
    let cases = SHAPES.iter().flat_map(|shape| settings.windows.iter().map(move |window| (*shape, *window)));
    for (shape, window) in cases {
        let mut sides = [(Kind::Bare, Vec::new()), (Kind::Headcount, Vec::new())];
        for _ in 0..settings.rounds {
            for (kind, outcomes) in &mut sides {
                outcomes.push(run(*kind, shape, window, settings)?);
            }
        }
        let [bare, ours] = sides.map(|(kind, outcomes)| (kind, median(outcomes)));
        for (kind, outcome) in [&bare, &ours] {
            println!(
                "| {} x {} | {window} | {} | {:.0} | {:.1} | {:.1} | {:.0} | {:.2} |",
                shape.rooms,
                shape.sockets,
                kind.name(),
                outcome.per_second,
                outcome.p50_ms,
                outcome.p99_ms,
                outcome.per_cpu_second,
                outcome.per_second / bare.1.per_second,
            );
        }
    }
    Ok(())
}

/// The middle one by deliveries a second.
fn median(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    outcomes.swap_remove(outcomes.len() / 2)
}

fn run(kind: Kind, shape: Shape, window: usize, settings: &Settings) -> Result<Outcome, Failure> {
    let server = Server::start(kind)?;
    let seconds = Duration::from_secs(settings.seconds);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(listeners::run(&server, shape, window, seconds))
}
