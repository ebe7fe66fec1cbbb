//! Chromium: two `RTCPeerConnection`s in one page with `iceTransportPolicy: "relay"`.
//!
//! A stock Chromium takes a TURN server on 127.0.0.1 as long as any other interface is up, even one without a route.
//! Where loopback is the only one it gathers no candidate at all, unless it is started with
//! `--allow-loopback-in-peer-connection`; then, and only then, the test does so and says it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::{Requirement, find_browser, find_program, require};

use super::tests_folder;
use crate::certificates::Certificates;
use crate::operators::kernel_path::scene::{IPV4, Scene};
use crate::server::{PASSWORD, Server, USER};

/// Chromium's flag for machines without a network.
const LOOPBACK_FLAG: &str = "--allow-loopback-in-peer-connection";

/// Returns Chromium; skips the test without it.
fn require_chromium() -> Option<PathBuf> {
    require(Requirement::Program, find_browser(&tests_folder().join("browser")))
}

/// Whether an interface other than loopback is up and has an address.
fn has_network() -> bool {
    let addresses = nix::ifaddrs::getifaddrs().unwrap();
    let mut addresses = addresses.filter(|interface| {
        let family = interface.address.as_ref().map(|address| (address.as_sockaddr_in(), address.as_sockaddr_in6()));
        matches!(family, Some((Some(_), _) | (_, Some(_))))
    });
    addresses.any(|interface| {
        interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP)
            && !interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_LOOPBACK)
    })
}

fn echo_through_relays(chromium: &Path, server: &Server, password: &str) -> Value {
    echo_through(chromium, &format!("turn:{}?transport=udp", server.listen[0]), password, None)
}

/// The same through the server at `url`, with `home` as the browser's home folder.
fn echo_through(chromium: &Path, url: &str, password: &str, home: Option<&Path>) -> Value {
    let mut script = Command::new("node");
    script.current_dir(tests_folder().join("browser")).arg("relay.mjs").arg(chromium).args([url, USER, password]);
    if let Some(home) = home {
        script.env("HOME", home);
    }
    if !has_network() {
        println!("loopback is the only interface: Chromium runs with {LOOPBACK_FLAG}");
        script.arg(LOOPBACK_FLAG);
    }
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every byte came back, through two relays of the server that both ends reached by `protocol`.
fn carried_everything(result: &Value, protocol: &str) {
    assert_eq!(result["opened"], true, "{result}");
    assert_eq!(result["mismatch"], Value::Null, "{result}");
    assert_eq!(result["echoed"], result["expected"]["messages"], "{result}");
    assert_eq!(result["bytes"], result["expected"]["bytes"], "{result}");
    for (end, other) in [("offerer", "answerer"), ("answerer", "offerer")] {
        let pair = &result[end];
        assert_eq!((&pair["local"], &pair["remote"]), (&"relay".into(), &"relay".into()), "{result}");
        assert_eq!(pair["relayProtocol"], protocol, "{result}");
        assert_eq!(pair["localRelay"], result[other]["remoteRelay"], "{result}");
        assert!(pair["bytesSent"].as_u64() >= result["expected"]["bytes"].as_u64(), "{result}");
    }
}

#[test]
fn chromium_echoes_over_two_relays() {
    let Some(chromium) = require_chromium() else { return };
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = echo_through_relays(&chromium, &server, PASSWORD);
    carried_everything(&result, "udp");
    let farewell = server.stop();
    assert!(farewell.out > 2 * 800, "hundreds of kilobytes cross two relays: {}", farewell.line);
}

/// The answering end is a peer on the client's link: one relay carries the call, and its channel is in the kernel.
#[test]
fn chromium_is_relayed_in_the_kernel() {
    let Some(chromium) = require_chromium() else { return };
    let Some(scene) = Scene::require_proven(&IPV4, "") else { return };
    // 800 KB there and back, of at most 1,200 bytes each.
    const PAYLOADS: u64 = 1_200;
    let url = format!("turn:{}?transport=udp", scene.server.listen);
    let mut script = Command::new("node");
    script.current_dir(tests_folder().join("browser")).arg("relay.mjs").arg(&chromium).args([
        &url,
        "bob",
        "bob-secret",
    ]);
    // The other end learns the host's address, and not a name that only a resolver knows.
    script.arg("--disable-features=WebRtcHideLocalIpsWithMdns").env("ANSWERER", "direct");
    let (output, share) = scene.share_of(PAYLOADS, || script.output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["opened"], &result["mismatch"]), (&true.into(), &Value::Null), "{result}");
    assert_eq!(result["bytes"], result["expected"]["bytes"], "{result}");
    assert_eq!(result["offerer"]["local"], "relay", "{result}");
    assert_eq!(result["answerer"]["local"], "host", "{result}");
    assert!(share >= 90, "{share} % in the kernel");
}

#[test]
fn chromium_with_a_wrong_password_gathers_nothing() {
    let Some(chromium) = require_chromium() else { return };
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = echo_through_relays(&chromium, &server, "wrong");
    assert_eq!((&result["opened"], &result["candidates"]), (&false.into(), &Value::Array(Vec::new())), "{result}");
    server.stop();
}

#[test]
fn chromium_echoes_over_two_relays_that_it_reaches_by_tcp() {
    let Some(chromium) = require_chromium() else { return };
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = echo_through(&chromium, &format!("turn:{}?transport=tcp", server.tcp[0]), PASSWORD, None);
    carried_everything(&result, "tcp");
    server.stop();
}

/// Chromium on Linux trusts what the NSS database of the user's home trusts, for TURN over TLS, too.
#[test]
fn chromium_echoes_over_two_relays_that_it_reaches_by_tls() {
    let Some(chromium) = require_chromium() else { return };
    let certutil = find_program("certutil", "libnss3-tools");
    let Some(certutil) = require(Requirement::Program, certutil) else { return };
    let certificates = Certificates::new();
    let files = certificates.flags();
    let flags = [&["--listen", "127.0.0.1:0", "--workers", "2"], &files.each_ref().map(String::as_str)[..]].concat();
    let server = Server::start(&flags);
    let url = format!("turns:{}?transport=tcp", server.tls[0]);
    let home = tempfile::tempdir().unwrap();
    let stranger = echo_through(&chromium, &url, PASSWORD, Some(home.path()));
    assert_eq!(stranger["candidates"], Value::Array(Vec::new()), "it does not trust the authority: {stranger}");
    let database = home.path().join(".pki/nssdb");
    std::fs::create_dir_all(&database).unwrap();
    let certutil = |arguments: &[&str]| {
        let database = format!("sql:{}", database.display());
        assert!(Command::new(&certutil).args(["-d", &database]).args(arguments).status().unwrap().success());
    };
    certutil(&["-N", "--empty-password"]);
    certutil(&["-A", "-t", "C,,", "-n", "test", "-i", certificates.authority_file().to_str().unwrap()]);
    let result = echo_through(&chromium, &url, PASSWORD, Some(home.path()));
    carried_everything(&result, "tls");
    server.stop();
}
