//! Durable Objects: this process becomes workerd.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::args::Common;

/// Runs workerd in place of this process; comes back only with an error.
pub fn run(common: &Common) -> Result<(), Failure> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("workerd");
    let package = format!("node_modules/@cloudflare/workerd-linux-{}/bin/workerd", architecture());
    let program = here.join(package);
    let mut command = Command::new(&program);
    command
        .arg("serve")
        .arg(here.join("config.capnp"))
        .args(["--socket-addr", &format!("http={}", common.listen)])
        .args(["--directory-path", &format!("data={}", common.dir.display())])
        .env("CAPACITY", common.capacity.to_string());
    let error = command.exec();
    Err(format!("{}: {error}; `npm ci` in benches/peers/workerd installs it", program.display()).into())
}

/// npm's name of it.
fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "64" }
}
