//! Which programs this machine has, and whether it lets this process administer it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether the process runs as root.
pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether `program` can be started.
pub(crate) fn is_on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Whether `cargo NAME` exists.
pub(crate) fn has_cargo_command(root: &Path, name: &str) -> bool {
    let status = Command::new("cargo")
        .args([name, "--version"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
