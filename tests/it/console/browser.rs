//! The page in a real browser, with the real binary behind it: Debian's Chromium, driven by Playwright (`tests/browser`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::keyed;
use crate::openapi::run;
use crate::service::Setup;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// What is installed, every package with its version and digest.
const LOCK: &str = include_str!("../../browser/package-lock.json");

/// The scripts beside the packages that they need, installed at the first use and kept under `target/`.
fn scripts() -> PathBuf {
    let (from, place) =
        (Path::new(ROOT).join("tests/browser"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser"));
    std::fs::create_dir_all(&place).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), place.join(file.file_name())).unwrap();
        }
    }
    let installed = place.join("installed.json");
    // Written last: an installation that was interrupted is made again.
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(LOCK) {
        run(Command::new("npm").current_dir(&place).args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]));
        std::fs::write(installed, LOCK).unwrap();
    }
    place
}

/// `tests/run` installs Chromium and Node.
#[test]
fn the_page_works_in_a_browser() {
    let scripts = scripts();
    let (open, locked) = (Setup::new(), Setup::new());
    let (service, with_keys) = (open.start(), keyed(&locked));
    let shots = Path::new(ROOT).join("target/console");
    std::fs::create_dir_all(&shots).unwrap();
    let said = run(Command::new("node")
        .current_dir(&scripts)
        .arg("console.mjs")
        .args(["--public", &service.public, "--admin", &service.admin_address])
        .args(["--keyed-admin", &with_keys.admin_address, "--keyed-public", &with_keys.public])
        .arg("--shots")
        .arg(shots));
    println!("{said}");
    assert!(said.contains("the page works"), "{said}");
    drop((service, with_keys));
    open.assert_verified();
}
