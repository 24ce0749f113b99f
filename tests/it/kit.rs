//! What is shipped beside the binary, tried with the binary: rules and dashboard by a real Prometheus, the Dockerfile's steps
//! without Docker, the systemd unit, the Debian package, the guides, and clients generated from its OpenAPI document. The scripts
//! are in `tests/kit`.

use std::path::Path;
use std::process::Command;

const HEADCOUNT: &str = env!("CARGO_BIN_EXE_headcount");

/// Runs a script with its arguments; whoever is not root becomes it where the script needs that.
fn check(script: &str, needs_root: bool, arguments: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kit").join(script);
    let id = Command::new("id").arg("-u").output().unwrap();
    let mut command = match needs_root && id.stdout.trim_ascii() != b"0" {
        true => {
            let mut sudo = Command::new("sudo");
            sudo.arg(&path);
            sudo
        }
        false => Command::new(&path),
    };
    let output = command.args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{said}");
    assert!(output.status.success(), "{script}: {said}");
}

#[test]
fn rules_alerts_and_dashboard_fit_the_metrics() {
    check("prometheus", false, &[HEADCOUNT]);
}

#[test]
fn the_dockerfile_s_steps_make_an_image_that_serves() {
    check("dockerfile", true, &["--binary", HEADCOUNT]);
}

#[test]
fn the_systemd_unit_gives_away_little_and_takes_away_nothing_that_is_needed() {
    check("systemd", true, &[HEADCOUNT]);
}

#[test]
fn a_debian_package_holds_what_an_operator_needs() {
    check("deb", false, &[HEADCOUNT]);
}

#[test]
fn clients_that_are_generated_from_the_document_work() {
    check("client_check", false, &[HEADCOUNT]);
}

#[test]
fn the_guides_print_what_happens() {
    check("guides", false, &[HEADCOUNT]);
}
