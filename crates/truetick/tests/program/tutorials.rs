//! The tutorials of docs/, executed word by word.
//!
//! Where a tutorial begins with a package, the test uses the built program in an empty folder, under the name
//! `truetick`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use testkit::tutorial::{Followed, find_launcher, follow};
use testkit::{Requirement, require};

/// A shell in a new network namespace, in which every port is free.
const ALONE: [&str; 8] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    "ip link set lo up && exec bash --noprofile --norc \"$@\"",
    "bash",
];
/// The same with an address of the documentation (RFC 5737).
const WITH_ADDRESS: [&str; 8] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    "ip link set lo up && ip addr add 203.0.113.7/32 dev lo && exec bash --noprofile --norc \"$@\"",
    "bash",
];
const PLAIN: [&str; 3] = ["bash", "--noprofile", "--norc"];

fn follow_page(name: &str, launcher: &[&str]) -> Followed {
    follow_in(tempfile::tempdir().unwrap().path(), name, launcher)
}

/// The same in `folder`, which has the files of the tutorial afterwards.
fn follow_in(folder: &Path, name: &str, launcher: &[&str]) -> Followed {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let document = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bin = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_truetick"), bin.path().join("truetick")).unwrap();
    follow(&document, launcher, folder, bin.path())
}

#[test]
fn the_gate_tutorial_prints_what_it_says() {
    assert_eq!(follow_page("gate-tutorial.md", &PLAIN), Followed { files: 3, commands: 6 });
}

#[test]
fn the_operator_tutorial_prints_what_it_says() {
    for (program, package) in [("openssl", "openssl"), ("curl", "curl")] {
        let Some(_) = require(Requirement::Program, testkit::find_program(program, package)) else { return };
    }
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&ALONE)) else { return };
    assert_eq!(follow_page("tutorial-operator.md", launcher), Followed { files: 1, commands: 19 });
}

/// Debian's coturn serves a call of coturn's client, and truetick takes its place on the same port. Prints what is lost.
#[test]
fn the_migration_from_coturn_prints_what_it_says() {
    for program in ["turnserver", "turnutils_uclient"] {
        let Some(_) = require(Requirement::Program, testkit::find_program(program, "coturn")) else { return };
    }
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&WITH_ADDRESS)) else { return };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(follow_in(folder.path(), "migrate-coturn.md", launcher), Followed { files: 1, commands: 30 });
    let lost = fs::read_to_string(folder.path().join("change.log")).unwrap();
    println!("from coturn to truetick: {}", lost.trim().replace('\n', "; "));
    let numbers: Vec<u32> = lost.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [gap_ms, packets] = numbers[..] else { panic!("{lost}") };
    assert!((1..30_000).contains(&gap_ms) && (1..600).contains(&packets), "{lost}");
}

#[test]
fn the_latency_tutorial_prints_what_it_says() {
    let Some(_) = require(Requirement::Program, testkit::find_program("curl", "curl")) else { return };
    let Some(_) = require(Requirement::TwoCpus, testkit::two_cpus()) else { return };
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&ALONE)) else { return };
    assert_eq!(follow_page("tutorial-latency.md", launcher), Followed { files: 0, commands: 10 });
}
