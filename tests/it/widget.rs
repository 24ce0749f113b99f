//! The like button as it is served, and in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::raw;
use crate::service::Setup;
use crate::tokens;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const LOCK: &str = include_str!("../browser/widget/package-lock.json");

#[test]
fn the_widget_is_served_to_everybody_and_kept_by_browsers() {
    let service = tokens::start();
    let get = |headers: &str| {
        let head = format!("GET /widget.js HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
        raw::exchange(&service.public, head.as_bytes())
    };
    let first = get("");
    assert_eq!((first.status, first.header("content-type")), (200, "text/javascript; charset=utf-8"));
    assert!(first.header("cache-control").starts_with("public, max-age=3600"), "{first:?}");
    assert!(
        first.text.contains("customElements.define(\"headcount-like\"") && !first.text.contains("innerHTML")
    );
    assert_eq!((first.header("content-encoding"), first.header("vary")), ("", "accept-encoding"));
    let etag = first.header("etag");
    for known in [etag.to_owned(), format!("W/{etag}"), format!("\"other\", {etag}")] {
        let again = get(&format!("if-none-match: {known}\r\n"));
        assert_eq!((again.status, again.text.as_str(), again.header("etag")), (304, "", etag), "{known}");
    }
    assert_eq!(get("if-none-match: \"other\"\r\n").status, 200);
    assert_eq!(raw::send(&service.public, "POST", "/widget.js", "").error(), "method_not_allowed");
}

#[test]
fn the_demo_is_served_where_it_is_asked_for() {
    let service = Setup::new().start();
    assert_eq!(raw::send(&service.public, "GET", "/demo", "").error(), "not_found");
    let service = Setup::new().with("server.demo", true).start();
    let page = raw::send(&service.public, "GET", "/demo", "");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    assert!(page.text.contains("<headcount-like item=\"post-1\" user=\"ada\""));
    // What it tells to type works where it is.
    assert!(!page.text.contains(":8787"), "{}", page.text);
    assert_eq!(raw::send(&service.admin_address, "GET", "/demo", "").status, 404);
}

/// The packages of the browser's test, installed at the first use and kept under `target/`.
fn packages() -> PathBuf {
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("widget-browser");
    let installed = into.join("installed.json");
    // Written last: an installation that was interrupted is made again.
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(LOCK) {
        std::fs::create_dir_all(&into).unwrap();
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(Path::new(ROOT).join("tests/browser/widget").join(file), into.join(file)).unwrap();
        }
        let npm =
            Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&into).output().unwrap();
        assert!(npm.status.success(), "{}", String::from_utf8_lossy(&npm.stderr));
        std::fs::write(installed, LOCK).unwrap();
    }
    into
}

/// Debian's Chromium, headless: `tests/run` installs it.
#[test]
fn a_page_likes_in_a_browser() {
    let setup = tokens::setup(&[("site", 1)]);
    let service = setup.with("server.cors_origins", "['*']").start();
    let demo = Setup::new().with("server.demo", true).start();
    // Modules are found from where the script is.
    let packages = packages();
    let script = packages.join("widget.mjs");
    std::fs::copy(Path::new(ROOT).join("tests/browser/widget/widget.mjs"), &script).unwrap();
    let output = Command::new("node")
        .arg(&script)
        .env("HEADCOUNT", format!("http://{}", service.public))
        .env("HEADCOUNT_DEMO", format!("http://{}", demo.public))
        .env("HEADCOUNT_KEY", tokens::KEY)
        .env("HEADCOUNT_SECRET", tokens::secret_base64(1))
        .output()
        .expect("node is installed by tests/run");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{text}");
    assert!(output.status.success(), "{text}");
}
