//! Chromium: two `RTCPeerConnection`s in one page with `iceTransportPolicy: "relay"`.
//!
//! A stock Chromium takes a TURN server on 127.0.0.1 as long as any other interface is up, even one without a route.
//! Where loopback is the only one it gathers no candidate at all, unless it is started with
//! `--allow-loopback-in-peer-connection`; then, and only then, the test does so and says it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::certificates::Certificates;
use super::server::{PASSWORD, Server, USER};
use super::{on_path, skip, tests_folder};

/// Chromium's flag for machines without a network.
const LOOPBACK_FLAG: &str = "--allow-loopback-in-peer-connection";

/// Chromium and the folder of the script that drives it, or why one of them cannot be had.
fn browser() -> Result<(PathBuf, PathBuf), &'static str> {
    let chromium = on_path("chromium").ok_or("chromium is not installed")?;
    on_path("node").ok_or("node is not installed")?;
    let folder = tests_folder().join("browser");
    if !folder.join("node_modules/playwright-core").is_dir() {
        return Err("playwright-core is not installed (npm ci in crates/truetick/tests/browser)");
    }
    Ok((chromium, folder))
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

fn echo_through_relays(server: &Server, password: &str) -> Result<Value, &'static str> {
    echo_through(&format!("turn:{}?transport=udp", server.listen[0]), password, None)
}

/// The same through the server at `url`, with `home` as the browser's home folder.
fn echo_through(url: &str, password: &str, home: Option<&Path>) -> Result<Value, &'static str> {
    let (chromium, folder) = browser()?;
    let mut script = Command::new("node");
    script.current_dir(folder).arg("relay.mjs").arg(chromium).args([url, USER, password]);
    if let Some(home) = home {
        script.env("HOME", home);
    }
    if !has_network() {
        println!("loopback is the only interface: Chromium runs with {LOOPBACK_FLAG}");
        script.arg(LOOPBACK_FLAG);
    }
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout).unwrap())
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
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = match echo_through_relays(&server, PASSWORD) {
        Ok(result) => result,
        Err(reason) => return skip("chromium_echoes_over_two_relays", reason),
    };
    carried_everything(&result, "udp");
    let farewell = server.stop();
    assert!(farewell.out > 2 * 800, "hundreds of kilobytes cross two relays: {}", farewell.line);
}

#[test]
fn chromium_with_a_wrong_password_gathers_nothing() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = match echo_through_relays(&server, "wrong") {
        Ok(result) => result,
        Err(reason) => return skip("chromium_with_a_wrong_password_gathers_nothing", reason),
    };
    assert_eq!((&result["opened"], &result["candidates"]), (&false.into(), &Value::Array(Vec::new())), "{result}");
    server.stop();
}

#[test]
fn chromium_echoes_over_two_relays_that_it_reaches_by_tcp() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let result = match echo_through(&format!("turn:{}?transport=tcp", server.tcp[0]), PASSWORD, None) {
        Ok(result) => result,
        Err(reason) => return skip("chromium_echoes_over_two_relays_that_it_reaches_by_tcp", reason),
    };
    carried_everything(&result, "tcp");
    server.stop();
}

/// Chromium on Linux trusts what the NSS database of the user's home trusts, for TURN over TLS, too.
#[test]
fn chromium_echoes_over_two_relays_that_it_reaches_by_tls() {
    let test = "chromium_echoes_over_two_relays_that_it_reaches_by_tls";
    let Some(certutil) = on_path("certutil") else {
        return skip(test, "certutil is not installed (Debian package libnss3-tools)");
    };
    let certificates = Certificates::new();
    let files = certificates.flags();
    let flags = [&["--listen", "127.0.0.1:0", "--workers", "2"], &files.each_ref().map(String::as_str)[..]].concat();
    let server = Server::start(&flags);
    let url = format!("turns:{}?transport=tcp", server.tls[0]);
    let home = tempfile::tempdir().unwrap();
    let stranger = match echo_through(&url, PASSWORD, Some(home.path())) {
        Ok(result) => result,
        Err(reason) => return skip(test, reason),
    };
    assert_eq!(stranger["candidates"], Value::Array(Vec::new()), "it does not trust the authority: {stranger}");
    let database = home.path().join(".pki/nssdb");
    std::fs::create_dir_all(&database).unwrap();
    let certutil = |arguments: &[&str]| {
        let database = format!("sql:{}", database.display());
        assert!(Command::new(&certutil).args(["-d", &database]).args(arguments).status().unwrap().success());
    };
    certutil(&["-N", "--empty-password"]);
    certutil(&["-A", "-t", "C,,", "-n", "test", "-i", certificates.authority_file().to_str().unwrap()]);
    let result = echo_through(&url, PASSWORD, Some(home.path())).unwrap();
    carried_everything(&result, "tls");
    server.stop();
}
