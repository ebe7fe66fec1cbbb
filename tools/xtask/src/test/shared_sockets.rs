//! Tests of the TURN server once more, with relays that share a socket.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Workplace;
use super::suites::libtest;
use crate::tally::{Outcome, Tally};

/// The tests about relays and what passes through them.
const MODULES: [&str; 4] = ["cases::allocate::", "packets::", "pools::", "relay::"];
/// They are about the sockets and descriptors of relays, which have none here, or start the program, which is a script
/// here, by other means.
const OTHERS: [&str; 5] = [
    "idle_sockets_are_bound",
    "running_out_of_descriptors",
    "the_table_of_descriptors",
    "what_keeps_it_from_starting",
    "the_kernel_lacks_an_option",
];
/// In a network namespace, so that the settings of the machine stay as they are.
const NAMESPACE: [&str; 4] =
    ["--net", "sh", "-c", "set -e; ip link set lo up; sysctl -q -w $PORTS; exec \"$0\" \"$@\""];
const PORTS: &str = "net.ipv4.ip_local_reserved_ports=49152-65535";
const SHARED: &str = "the relays of a worker share a socket";

pub(super) fn run(place: &Workplace) -> Outcome {
    let binaries = match place.binaries() {
        Ok(binaries) => binaries,
        Err(error) => return Outcome::Ran(Tally::fail(error)),
    };
    let Some((executable, folder)) = binaries.find("truetick", "tests/turn") else {
        return Outcome::Ran(Tally::fail("the tests of truetick are not built"));
    };
    let program = match wrapper(&place.steps.root) {
        Ok(program) => program,
        Err(error) => return Outcome::Ran(Tally::fail(format!("shared-sockets: {error}"))),
    };
    let inside = |name: &str| {
        let mut command = place.steps.command("unshare", &NAMESPACE);
        command.arg(name).env("PORTS", PORTS).env("TRUETICK_PROGRAM", &program);
        command
    };
    if !place.steps.finish("unshare", &mut inside("true")).succeeded() {
        return Outcome::Skipped("network namespaces are not permitted".to_owned());
    }
    let check = ["turn", "--listen", "127.0.0.1:0", "--user", "ann:pass", "--check-config"];
    let checked = place.steps.finish("shared-check", inside(&program).args(check));
    if !checked.output.contains(SHARED) {
        let reason = checked.output.lines().find(|line| line.contains("each relay has a socket"));
        return match reason {
            Some(line) if line.contains("the kernel denies BPF") => Outcome::Skipped(line.to_owned()),
            _ => Outcome::Ran(Tally::fail(format!("shared-sockets: {}", checked.output))),
        };
    }
    let mut command = inside(&executable.to_string_lossy());
    // Servers in one namespace that share relay addresses take each other's ports.
    command.args(["--test-threads", "1"]).args(MODULES).args(OTHERS.iter().flat_map(|other| ["--skip", other]));
    libtest(place, "shared-sockets", command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder))
}

/// Writes a program that runs truetick with one flag more.
fn wrapper(root: &Path) -> std::io::Result<String> {
    let (path, program) = (root.join("target/xtask/truetick-shared"), root.join("target/debug/truetick"));
    let text = format!(
        "#!/bin/sh\nfor word; do\n  shift\n  set -- \"$@\" \"$word\"\n  \
         [ \"$word\" = turn ] && set -- \"$@\" --relay-sockets shared\ndone\nexec '{}' \"$@\"\n",
        program.display()
    );
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}
