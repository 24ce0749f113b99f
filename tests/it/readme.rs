//! The README's tour is what really happens: every command is run, every answer compared.

use std::process::Command;

use serde_json::Value;

use crate::service::{HEADCOUNT, Setup};

/// A block of the tour: a language and its lines.
struct Block {
    language: String,
    text: String,
}

fn tour() -> Vec<Block> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, tour) = readme.split_once("## A tour").unwrap();
    let (tour, _) = tour.split_once("\n## ").unwrap();
    let fenced = tour.split("```").skip(1).step_by(2);
    let block = |block: &str| {
        let (language, text) = block.split_once('\n').unwrap();
        Block { language: language.to_owned(), text: text.to_owned() }
    };
    fenced.map(block).collect()
}

/// Times differ from run to run, and which of the ten was first; nothing else may.
fn without_what_varies(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            let raced = fields.get("requestId").is_some_and(|id| id == "request-1");
            let varies = |name: &str| match name {
                "asOf" | "ageMs" | "likedAt" | "from" | "epoch" | "at" | "expiresAt" | "decidedAt" => true,
                "status" | "reserved" | "reason" => raced,
                _ => false,
            };
            fields.retain(|name, _| !varies(name));
            fields.values_mut().for_each(|field| *field = without_what_varies(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_what_varies(item.take())),
        _ => {}
    }
    value
}

fn comparable(output: &str) -> Vec<Value> {
    let spaced = output.replace("}{", "}\n{");
    // How many rows it took, and how long.
    let timed = |line: &str| match line.split_once(" s: ") {
        Some((took, what)) if took.starts_with("moved ") => what.to_owned(),
        _ => line.to_owned(),
    };
    let spaced: Vec<String> = spaced.lines().map(timed).collect();
    let lines = spaced.iter().map(String::as_str).filter(|line| !line.trim().is_empty());
    lines
        .map(|line| without_what_varies(serde_json::from_str(line).unwrap_or_else(|_| line.into())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_is_what_happens() {
    let setup = Setup::new();
    let mut service = setup.start();
    let blocks = tour();
    assert!(blocks.len() >= 18, "the tour has lost its blocks");
    for pair in blocks.chunks(2) {
        let [command, expected] = pair else { panic!("a command without its output") };
        assert_eq!((command.language.as_str(), expected.language != "sh"), ("sh", true));
        if command.text.contains("launch-day/status") {
            // "Stop it and start it again."
            assert!(service.stop().success());
            service = setup.start();
        }
        let stops = command.text.contains("headcount reshard");
        service.client.rolled_up("post-1").await;
        let (public, admin) = (service.public.clone(), service.admin_address.clone());
        // "The service stops for it; started again, it counts on."
        let stopped = stops.then(|| {
            service.send_sigterm();
            assert!(service.wait().success());
        });
        let script = command
            .text
            .replace("127.0.0.1:8787", &public)
            .replace("127.0.0.1:8788", &admin)
            .replace("/tmp/tour", setup.scratch().join("tour").to_str().unwrap())
            .replace("headcount verify", &format!("{HEADCOUNT} verify"))
            .replace("headcount reshard", &format!("{HEADCOUNT} reshard"))
            .replace("headcount backup", &format!("{HEADCOUNT} backup"))
            .replace("headcount restore", &format!("{HEADCOUNT} restore"))
            .replace("--data-dir data", &format!("--data-dir {}", setup.data_dir().display()));
        let output =
            Command::new("bash").args(["-euc", &script]).current_dir(setup.scratch()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{script}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(comparable(&printed), comparable(&expected.text), "{script}");
        if stopped.is_some() {
            service = setup.start();
        }
    }
}
