//! docs/browsers.md: each of its ways to sign makes tokens that are believed.

use std::process::Command;

use super::*;

const DOCS: &str = include_str!("../../../docs/browsers.md");

/// The first block of a language below a heading.
fn block(language: &str) -> &'static str {
    let (_, below) = DOCS.split_once("### Signing one").unwrap();
    let (_, block) = below.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0
}

#[test]
fn every_documented_way_to_sign_is_believed() {
    let service = setup(&[("2026", 1)]).start();
    let secret = secret_base64(1);
    let shell = block("sh").split_once("curl ").unwrap().0;
    for (program, arguments, script) in [
        (
            "node",
            vec!["--input-type=module", "-e"],
            format!("{}\nconsole.log(token('ada', '{secret}'))", block("js")),
        ),
        ("python3", vec!["-c"], format!("{}\nprint(token('ada', '{secret}'))", block("python"))),
        ("bash", vec!["-c"], format!("{shell}\ntoken ada '{secret}'")),
    ] {
        let output = Command::new(program).args(arguments).arg(&script).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap();
        let answer = send(&service.public, &bearer(token.trim()), "PUT", "/likes/a/users/ada", "");
        assert_eq!(answer.status, 200, "{program}: {answer:?}");
    }
}

/// Its tables name each word that a token can meet.
#[test]
fn every_word_is_documented() {
    for word in [
        "invalid_token",
        "token_expired",
        "forbidden",
        "not_your_user",
        "beyond_token",
        "foreign_origin",
        "too_many_connections",
    ] {
        assert!(DOCS.contains(&format!("| `{word}` | ")), "{word}");
    }
}
