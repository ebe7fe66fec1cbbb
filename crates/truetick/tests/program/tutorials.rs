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
const PLAIN: [&str; 3] = ["bash", "--noprofile", "--norc"];

fn follow_page(name: &str, launcher: &[&str]) -> Followed {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let document = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (folder, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(env!("CARGO_BIN_EXE_truetick"), bin.path().join("truetick")).unwrap();
    follow(&document, launcher, folder.path(), bin.path())
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

#[test]
fn the_latency_tutorial_prints_what_it_says() {
    let Some(_) = require(Requirement::Program, testkit::find_program("curl", "curl")) else { return };
    let Some(_) = require(Requirement::TwoCpus, testkit::two_cpus()) else { return };
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&ALONE)) else { return };
    assert_eq!(follow_page("tutorial-latency.md", launcher), Followed { files: 0, commands: 10 });
}
