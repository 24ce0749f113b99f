//! The same with a client of another language: Python's `websockets`.

use std::path::Path;
use std::process::Command;

use crate::openapi::python;
use crate::service::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn pythons_websockets_understand_us() {
    let service = Setup::new().start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/rooms.py");
    let output = Command::new(python().join("python")).arg(script).arg(&service.public).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("all well"), "{said}");
}
