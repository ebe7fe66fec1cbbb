//! Every corpus, replayed on whatever toolchain this is.

use std::fs;
use std::path::Path;

use fuzz::Target;

fn replay(name: &str, target: Target) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let inputs: Vec<_> = fs::read_dir(corpus).expect(name).map(|entry| entry.expect(name).path()).collect();
    assert!(inputs.len() >= 16, "{name} has only {} inputs", inputs.len());
    for input in inputs {
        target(&fs::read(input).expect("a readable input"));
    }
}

#[test]
fn codec() {
    replay("codec", fuzz::codec::run);
}

#[test]
fn attributes() {
    replay("attributes", fuzz::attributes::run);
}

#[test]
fn framing() {
    replay("framing", fuzz::framing::run);
}

#[test]
fn policy() {
    replay("policy", fuzz::policy::run);
}

#[test]
fn server() {
    replay("server", fuzz::server::run);
}
