//! Builds libraries for `LD_PRELOAD`, which let the real binary meet disks that tests cannot have.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles a shim from its C source and returns its path.
///
/// The file name holds a hash of the source, so that it is compiled once and an old build is never taken for a new
/// one. Tests run in parallel, in threads and in processes: each compiles to a name of its own and renames, so that
/// nobody loads half a library.
///
/// # Panics
///
/// If the C compiler `cc` is missing or rejects the source. A test without its shim would pass and show nothing.
pub fn build(name: &str, source: &str) -> PathBuf {
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let name = format!("{name}-{:016x}.so", hasher.finish());
    let out_dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(out_dir).expect("create the directory of the shim");
    // LD_PRELOAD splits at spaces and colons, and takes a relative path for one from the child's working directory.
    let out_dir = fs::canonicalize(out_dir).expect("find the directory of the shim");
    let shim = out_dir.join(&name);
    let splits = shim.as_os_str().as_bytes().iter().any(|b| b" :".contains(b));
    assert!(!splits, "LD_PRELOAD cannot hold {}", shim.display());
    if shim.exists() {
        return shim;
    }
    let build = BUILDS.fetch_add(1, Ordering::Relaxed);
    let temporary = out_dir.join(format!("{name}.{}.{build}", std::process::id()));
    let mut cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-x", "c", "-", "-o"])
        .arg(&temporary)
        .stdin(Stdio::piped())
        .spawn()
        .expect("run cc");
    let source_sent = cc.stdin.take().expect("cc has a stdin").write_all(source.as_bytes());
    let status = cc.wait().expect("wait for cc");
    assert!(status.success(), "cc rejects {name}: {status}");
    source_sent.expect("send the source to cc");
    fs::rename(&temporary, &shim).expect("put the shim in its place");
    shim
}
