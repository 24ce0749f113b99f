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
    let commands =
        ["serve", "verify", "reshard", "backup", "restore", "import", "export", "check-config", "health"];
    for arguments in
        [&["completions", "bash"][..], &["completions", "zsh"], &["completions", "fish"], &["man"]]
    {
        let output = setup.run(arguments);
        assert!(output.status.success(), "{arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap().replace("\\-", "-");
        for command in commands {
            assert!(text.contains(command), "{arguments:?} does not name {command}");
        }
    }
}
