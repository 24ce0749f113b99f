//! What a request costs over many likes, and over none.

use std::sync::Arc;

use super::{FIRST_NUMBER, in_turn};
use crate::Failure;
use crate::args::Settings;
use crate::child::{self, Process};
use crate::generator::{Load, Plan};
use crate::items::Items;
use crate::report;
use crate::request::Request;
use crate::response::Expect;
use crate::tally::Tally;

const FEED: usize = 50;
const USER: &str = r#"{"userId":"<id>"}"#;
const TOTAL: Expect = Expect::Body(br#""total":"#);
const CHANGED: Expect = Expect::Body(br#""changed":true"#);

struct Kind {
    name: &'static str,
    line: String,
    body: &'static str,
    then: Option<&'static str>,
    is_zipf: bool,
    expect: Expect,
}

fn kinds() -> [Kind; 7] {
    let feed: Vec<_> = (0..FEED).map(|_| "item=i<item>").collect();
    let kind = |name, line: &str, is_zipf| Kind {
        name,
        line: line.to_owned(),
        body: "",
        then: None,
        is_zipf,
        expect: TOTAL,
    };
    [
        kind("rolled-up read, by Zipf", "GET /likes/i<item>", true),
        kind("rolled-up read, every item in turn", "GET /likes/i<item>", false),
        kind(
            "feed of 50 and a user's likes, by Zipf",
            &format!("GET /likes?{}&user=<id>", feed.join("&")),
            true,
        ),
        kind("exact read, by Zipf", "GET /likes/i<item>?exact=true", true),
        Kind { body: USER, expect: CHANGED, ..kind("like, by Zipf", "POST /likes/i<item>", true) },
        Kind {
            body: USER,
            expect: CHANGED,
            ..kind("like, every item in turn", "POST /likes/i<item>", false)
        },
        Kind {
            then: Some("DELETE /likes/i<item>/users/<id>"),
            expect: CHANGED,
            ..kind("like and unlike, by Zipf, pairs", "PUT /likes/i<item>/users/<id>", true)
        },
    ]
}

/// Every kind of request on both services, in turns; the table shows medians of the rounds.
pub fn measure(loaded: &Process, empty: &Process, items: u64, settings: &Settings) -> Result<(), Failure> {
    let zipf = Arc::new(Items::zipf(items as usize));
    let mut next = FIRST_NUMBER;
    println!(
        "\n| requests/s | loaded | p50, p99 ms | empty | p50, p99 ms | loaded beside empty |\n|---|---:|---:|---:|---:|---:|"
    );
    for kind in kinds() {
        let choice = if kind.is_zipf { Arc::clone(&zipf) } else { in_turn(items) };
        let mut rounds: [Vec<Tally>; 2] = Default::default();
        for _ in 0..settings.rounds {
            for (process, tallies) in [loaded, empty].into_iter().zip(&mut rounds) {
                child::settle(std::slice::from_ref(process))?;
                let plan = Plan {
                    address: process.address,
                    connections: settings.connections,
                    threads: settings.threads,
                    warm_up: settings.warm_up,
                    length: settings.length,
                    request: Request::new(&kind.line, kind.body, Some(Arc::clone(&choice))),
                    then: kind.then.map(|line| Request::new(line, "", Some(Arc::clone(&choice)))),
                    reads: None,
                    pace: None,
                    is_stream: false,
                    expect: kind.expect,
                    items: items as usize,
                    first_number: next,
                };
                next += FIRST_NUMBER;
                let tally = Load::connect(plan)?.run()?;
                if tally.all.met != tally.all.answers() {
                    return Err(format!("{}: {}", kind.name, report::statuses(&tally)).into());
                }
                tallies.push(tally);
            }
        }
        let [loaded, empty] = rounds.map(Median::of);
        let beside = loaded.rate / empty.rate;
        println!("| {} | {loaded} | {empty} | {beside:.2} |", kind.name);
    }
    Ok(())
}

struct Median {
    rate: f64,
    p50: f64,
    p99: f64,
}

impl Median {
    fn of(tallies: Vec<Tally>) -> Self {
        let rates: Vec<_> = tallies.iter().map(Tally::rate).collect();
        let mut all = Tally::new(tallies.first().map_or(0, |tally| tally.met_by_item.len()));
        tallies.iter().for_each(|tally| all.merge(tally));
        let latency = |quantile| all.latency.quantile_ms(quantile);
        Self { rate: report::median(rates), p50: latency(0.5), p99: latency(0.99) }
    }
}

impl std::fmt::Display for Median {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{:.0} | {:.1}, {:.1}", self.rate, self.p50, self.p99)
    }
}
