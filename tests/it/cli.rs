//! What the command line offers beside serving: a check from outside, completions, the manual page.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::service::Setup;

/// Runs `headcount health`: exit code, and what it said.
fn health(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let output = setup.run(&[&["health"], arguments].concat());
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn health_asks_the_service_where_the_settings_or_a_flag_say() {
    let setup = Setup::new();
    let service = setup.start();
    let address = service.public.to_string();
    assert_eq!(health(&setup, &["--address", &address]), (Some(0), "ok\n".to_owned()));
    assert_eq!(health(&setup, &["--address", &address, "--ready"]), (Some(0), "ready\n".to_owned()));

    // One that listens everywhere is asked on loopback.
    let port = address.rsplit_once(':').unwrap().1;
    let file = setup.scratch().join("settings.toml");
    std::fs::write(&file, format!("[server]\nlisten = \"0.0.0.0:{port}\"\n[auth]\nopen = true\n")).unwrap();
    assert_eq!(health(&setup, &["--config", file.to_str().unwrap()]), (Some(0), "ok\n".to_owned()));

    drop(service);
    let (code, said) = health(&setup, &["--address", &address]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nobody answers at"), "{said}");
}

#[test]
fn health_of_what_answers_otherwise_or_not_at_all_is_bad() {
    let setup = Setup::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, said) = health(&setup, &["--address", &silent.local_addr().unwrap().to_string()]);
    assert_eq!((code, said.contains("no answer from")), (Some(1), true), "{said}");

    let unwell = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unwell.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = unwell.accept().unwrap();
        // An answer that came before its question would be no answer.
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        let body = r#"{"detail":"partitions down: 1"}"#;
        let head = format!("HTTP/1.1 503 Service Unavailable\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
        stream
    });
    let (code, said) = health(&setup, &["--address", &address, "--ready"]);
    assert_eq!((code, said.contains("503")), (Some(1), true), "{said}");
    assert!(said.contains("partitions down: 1"), "{said}");
    answers.join().unwrap();
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let setup = Setup::new();
    let help = String::from_utf8(setup.run(&["--help"]).stdout).unwrap();
    let listed = help.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
    let commands = listed.lines().filter_map(|line| line.split_whitespace().next());
    let commands: Vec<&str> = commands.filter(|command| *command != "help").collect();
    assert!(commands.len() >= 12 && commands.contains(&"new-key"), "{commands:?}");
    for arguments in
        [&["completions", "bash"][..], &["completions", "zsh"], &["completions", "fish"], &["man"]]
    {
        let output = setup.run(arguments);
        assert!(output.status.success(), "{arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap().replace("\\-", "-");
        for command in &commands {
            assert!(text.contains(command), "{arguments:?} does not name {command}");
        }
    }
}

/// As a user presses the tabulator.
#[test]
fn bash_completes_commands_and_options() {
    let setup = Setup::new();
    let script = setup.scratch().join("headcount.bash");
    std::fs::write(&script, setup.run(&["completions", "bash"]).stdout).unwrap();
    for (words, expected) in [("headcount ver", "verify"), ("headcount reshard --part", "--partitions")] {
        let (before, last) = words.rsplit_once(' ').unwrap();
        let pressed = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _headcount headcount '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = std::process::Command::new("bash").args(["-c", &pressed]).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(said.trim(), expected, "{words}");
    }
}

#[test]
fn the_manual_tells_what_no_definition_says() {
    let setup = Setup::new();
    let page = String::from_utf8(setup.run(&["man"]).stdout).unwrap();
    for section in
        ["NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "SIGNALS", "ENVIRONMENT", "FILES", "EXAMPLES"]
    {
        assert_eq!(page.lines().filter(|line| *line == format!(".SH {section}")).count(), 1, "{section}");
    }
    // What it says of exit codes is so.
    assert_eq!(setup.run(&["serv"]).status.code(), Some(2));
    assert_eq!(setup.run(&["check-config", "--config", "absent.toml"]).status.code(), Some(1));
    assert_eq!(setup.run(&["verify"]).status.code(), Some(2));
}

#[test]
fn a_mistake_on_the_command_line_hears_what_to_do() {
    let setup = Setup::new();
    let refused = |setup: &Setup, arguments: &[&str]| {
        let output = setup.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for arguments in [
        &["serve", "--listen", "localhost:9000"][..],
        &["serve", "--admin-listen", "8788"],
        &["health", "--address", "localhost:9000"],
        &["backup", "today", "--admin", "localhost:9000"],
    ] {
        let said = refused(&setup, arguments);
        assert!(said.contains("must be an IP address and port, such as 127.0.0.1:8787"), "{said}");
    }
    let nothing = setup.scratch().join("data");
    for arguments in [&["verify"][..], &["reshard", "--shards", "4"], &["export"]] {
        let said = refused(&setup, arguments);
        assert!(said.contains(&format!("{} is no data directory", nothing.display())), "{said}");
        assert!(said.contains("Give --data-dir"), "{said}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(&setup, &["serve", "--listen", &address, "--admin-listen", "127.0.0.1:0"]);
    assert!(said.contains("Is headcount running already?"), "{said}");
}

#[test]
fn a_variable_with_one_underscore_is_told_of() {
    let setup = Setup::new().with_env("HEADCOUNT_SERVER_DEMO", "true").with_env("HEADCOUNT_API_KEY", "k");
    let output = setup.run(&["check-config"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("HEADCOUNT_SERVER_DEMO is no setting"), "{said}");
    assert!(said.contains("HEADCOUNT__SERVER__DEMO"), "{said}");
    assert!(!said.contains("API_KEY"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_and_restore_read_the_settings_that_they_are_given() {
    let setup = Setup::new();
    let service = setup.start();
    let file = setup.scratch().join("settings.toml");
    std::fs::write(&file, format!("[storage]\ndata_dir = {:?}\n", setup.data_dir())).unwrap();
    let file = file.to_str().unwrap();
    let output = setup.run(&["verify", "--config", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // The public listener takes no backups, and says who does.
    let output = setup.run(&["backup", "one", "--admin", &service.public]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is no admin listener"), "{said}");
    let output = setup.run(&["backup", "one", "--admin", &service.admin_address]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let other = setup.scratch().join("other");
    std::fs::write(file, format!("[storage]\ndata_dir = {other:?}\n")).unwrap();
    let output = setup.run(&["restore", "backups/one", "--config", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(other.join("manifest.json").exists());
}
