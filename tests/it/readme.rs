//! What a newcomer pastes is what really happens: every command of the README and of the tour is run, every answer compared.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::service::{HEADCOUNT, Service, Setup};

/// A command and what it prints; `skip` says why the command is not run here.
struct Step {
    command: String,
    skip: bool,
    printed: String,
}

/// The ```sh blocks, each with the block that shows what it prints, if that comes at once.
fn steps(page: &str) -> Vec<Step> {
    let mut fenced = page.split("```");
    let mut steps: Vec<Step> = Vec::new();
    let mut between = fenced.next().unwrap();
    while let (Some(block), Some(after)) = (fenced.next(), fenced.next()) {
        let (language, text) = block.split_once('\n').unwrap();
        match (language.split_once(' ').map_or(language, |(language, _)| language), steps.last_mut()) {
            ("sh", _) => steps.push(Step {
                command: text.to_owned(),
                skip: language.starts_with("sh skip: "),
                printed: String::new(),
            }),
            (_, Some(step)) if between.trim().is_empty() => text.clone_into(&mut step.printed),
            (language, _) => panic!("a block of {language} without a command"),
        }
        between = after;
    }
    steps
}

fn read(page: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

/// Times differ from run to run, and which of the ten was first; nothing else may.
fn without_what_varies(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            let raced = fields.get("requestId").is_some_and(|id| id == "request-1");
            let varies = |name: &str| match name {
                "asOf" | "ageMs" | "likedAt" | "from" | "epoch" | "at" | "expiresAt" | "decidedAt" => true,
                // Of a backup.
                "dir" | "takenAt" | "bytes" | "durationMs" | "heldMs" => true,
                "status" | "reserved" | "reason" => raced,
                _ => false,
            };
            // What varies must be there all the same.
            for (name, field) in fields.iter_mut() {
                *field = if varies(name) { Value::Null } else { without_what_varies(field.take()) };
            }
            if raced {
                fields.remove("reason");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_what_varies(item.take())),
        _ => {}
    }
    value
}

/// The lines as a terminal shows them: nothing is put in between.
fn comparable(output: &str) -> Vec<Value> {
    // How many rows or bytes it took, how long, and when.
    let told = |line: &str| match line.split_once(" s: ") {
        Some((took, what)) if took.starts_with("moved ") => what.to_owned(),
        _ if line.starts_with("restored ") => line.replace(|digit: char| digit.is_ascii_digit(), ""),
        _ => line.to_owned(),
    };
    let lines = output.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| without_what_varies(serde_json::from_str(line).unwrap_or_else(|_| told(line).into())))
        .collect()
}

/// Runs a command as it is pasted, in the directory that the service was started in, and compares what it prints.
fn paste(step: &Step, setup: &Setup, public: &str, admin: &str) {
    let script = step.command.replace("127.0.0.1:8787", public).replace("127.0.0.1:8788", admin);
    let beside = Path::new(HEADCOUNT).parent().unwrap().display();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    let output =
        bash.args(["-euc", &script]).current_dir(setup.scratch()).env("PATH", path).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{script}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(comparable(&printed), comparable(&step.printed), "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trying_it_is_what_happens() {
    let readme = read("README.md");
    let setup = Setup::new();
    let service = setup.start();
    let (skipped, pasted): (Vec<Step>, Vec<Step>) = steps(&readme).into_iter().partition(|step| step.skip);
    let [started, _tests] = skipped.as_slice() else {
        panic!("one command builds and serves, and one tests")
    };
    let ready = started.printed.replace("127.0.0.1:8787", &service.public);
    let ready = ready.replace("127.0.0.1:8788", &service.admin_address);
    let addresses = |line: &str| line.split_once(", data in /").unwrap().0.to_owned();
    assert_eq!(addresses(&ready), addresses(&service.ready));

    assert_eq!(pasted.len(), 3, "a like, a hold and its confirmation");
    for step in &pasted {
        paste(step, &setup, &service.public, &service.admin_address);
    }
    // "Stop it (Ctrl-C, or kill -9 if you like) and start it again: the like and the seats are there."
    service.kill();
    let service = setup.start();
    assert_eq!(service.client.get("/likes/post-1?exact=true").await.json["total"], 1);
    assert_eq!(service.client.get("/workshops/pottery/status").await.json["reserved"], 2);
}

fn stop(service: &mut Service) {
    service.send_sigterm();
    assert!(service.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_is_what_happens() {
    let tour = read("docs/tour.md");
    let steps = steps(&tour);
    assert!(steps.len() >= 15, "the tour has lost its blocks");
    let setup = Setup::new();
    let mut service = setup.start();
    for step in steps.iter().filter(|step| !step.skip) {
        // "Stop the service and start it again", "Stop the service for it; started again, it counts on."
        let (again, without) =
            (step.command.contains("launch-day/status"), step.command.contains("headcount reshard"));
        if again {
            stop(&mut service);
            service = setup.start();
        }
        service.client.rolled_up("post-1").await;
        let (public, admin) = (service.public.clone(), service.admin_address.clone());
        if without {
            stop(&mut service);
        }
        paste(step, &setup, &public, &admin);
        if without {
            service = setup.start();
        }
    }
}
