//! PyPI's `aioice`: two connections with relayed candidates only.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::{Requirement, require};

use super::tests_folder;
use crate::certificates::Certificates;
use crate::operators::kernel_path::scene::{IPV4, Scene};
use crate::server::{PASSWORD, Server, USER};

/// A Python that has aioice: `TRUETICK_PYTHON`, or the workspace's virtual environment.
fn python() -> Result<PathBuf, String> {
    let python = std::env::var_os("TRUETICK_PYTHON")
        .map_or_else(|| tests_folder().join("../../../.venv/bin/python"), PathBuf::from);
    let import = Command::new(&python).args(["-c", "import aioice"]).stderr(Stdio::null()).status();
    match import {
        Ok(status) if status.success() => Ok(python),
        Ok(_) => Err(format!("{} has no aioice", python.display())),
        Err(_) => Err("no Python with aioice: neither TRUETICK_PYTHON nor .venv/bin/python".to_owned()),
    }
}

/// Two connections by `transport` ("udp", "tcp" or "tls"); Python trusts the authority of `certificates`.
fn relays_both_ways(transport: &str, certificates: &Certificates) {
    let Some(python) = require(Requirement::Program, python()) else { return };
    let files = certificates.flags();
    let flags = [&["--listen", "127.0.0.1:0", "--workers", "2"], &files.each_ref().map(String::as_str)[..]].concat();
    let server = Server::start(&flags);
    let addr = server.listen[0];
    let output = Command::new(python)
        .arg(tests_folder().join("turn/clients/aioice_relay.py"))
        .args([&addr.ip().to_string(), &addr.port().to_string(), USER, PASSWORD, transport])
        .env("SSL_CERT_FILE", certificates.authority_file())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["there"], result["payloads"], "{result}");
    assert_eq!(result["back"], result["payloads"], "{result}");
    for (end, other) in [("caller", "callee"), ("callee", "caller")] {
        assert_eq!((&result[end]["local"], &result[end]["remote"]), (&"relay".into(), &"relay".into()), "{result}");
        // Relays on one address share permissions, so a pair may look right and carry nothing: the ends must agree.
        assert_eq!(result[end]["local_addr"], result[other]["remote_addr"], "{result}");
    }
    let farewell = server.stop();
    assert!(farewell.out >= 4 * result["payloads"].as_u64().unwrap(), "{}", farewell.line);
}

/// The callee is a peer on the client's link: one relay carries the call, and its channel is in the kernel.
#[test]
fn aioice_is_relayed_in_the_kernel() {
    let Some(python) = require(Requirement::Program, python()) else { return };
    let Some(scene) = Scene::require_proven(&IPV4, "") else { return };
    const PAYLOADS: u64 = 200;
    let listen = scene.server.listen;
    let mut call = Command::new(python);
    call.arg(tests_folder().join("turn/clients/aioice_relay.py"));
    call.args([&listen.ip().to_string(), &listen.port().to_string(), "bob", "bob-secret", "udp", "direct"]);
    let (output, share) = scene.share_of(2 * PAYLOADS, || call.output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["there"], &result["back"]), (&PAYLOADS.into(), &PAYLOADS.into()), "{result}");
    assert_eq!(
        (&result["caller"]["local"], &result["caller"]["remote"]),
        (&"relay".into(), &"host".into()),
        "{result}"
    );
    assert!(share >= 90, "{share} % in the kernel");
}

#[test]
fn aioice_relays_both_ways() {
    relays_both_ways("udp", &Certificates::new());
}

#[test]
fn aioice_relays_both_ways_over_tcp() {
    relays_both_ways("tcp", &Certificates::new());
}

#[test]
fn aioice_relays_both_ways_over_tls() {
    relays_both_ways("tls", &Certificates::new());
}
