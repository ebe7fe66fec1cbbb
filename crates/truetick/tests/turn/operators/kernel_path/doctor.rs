//! `truetick doctor paths` on the hosts of the kernel path's tests.

use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::{Requirement, require};

use super::scene::{CLIENT, ROUTER, SERVER, Scene, network};
use crate::operators::namespaces::{Network, ip};

const OBJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tt-path/bpf/paths.bpf.o");

fn doctor(network: &Network, place: usize, before: &[&str], arguments: &[&str]) -> Output {
    let program = crate::server::program().into_os_string().into_string().unwrap();
    let words: Vec<&str> = [before, &[&program, "doctor", "paths"], arguments].concat();
    network.on(place, || Command::new(words[0]).args(&words[1..]).output().unwrap())
}

fn report(network: &Network, place: usize, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = doctor(network, place, &[], &[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}")))
}

/// Ethernet address of an interface.
fn mac(network: &Network, place: usize, device: &str) -> String {
    let path = format!("/sys/class/net/{device}/address");
    let name = network.names[place].as_str();
    let output = Command::new("ip").args(["netns", "exec", name, "cat", &path]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_doctor_names_the_running_server_and_the_next_hops() {
    let Some(mut scene) = Scene::require("native", "off") else { return };
    // Now the kernel knows the neighbours.
    scene.relay_out();
    let (status, report) = report(&scene.network, SERVER, &["--peer", "10.93.0.2"]);
    assert_eq!((status, &report["missing"], &report["rejected"]), (Some(0), &json!([]), &Value::Null), "{report}");
    let interfaces = report["interfaces"].as_array().unwrap();
    let named = |name: &str| interfaces.iter().find(|interface| interface["name"] == name).unwrap();
    for interface in [named("c0"), named("r0")] {
        assert_eq!((&interface["driver"], &interface["native_use"]), (&json!("veth"), &json!("asked")), "{interface}");
        let program = &interface["program"];
        assert_eq!((&program["name"], &program["mode"]), (&json!("paths"), &json!("native")), "{program}");
        assert_eq!(program["held_by"], json!([format!("truetick ({})", scene.server.id())]), "{program}");
        assert!(interface["plans"].as_array().unwrap().iter().all(|plan| plan["result"] == "sockets"), "{interface}");
        let advice = interface["advice"].to_string();
        assert!(advice.contains("ethtool -K IFACE gro on tx off, in the other namespace"), "{advice}");
    }
    let hop = &named("r0")["next_hops"][0];
    assert_eq!((&hop["via"], &hop["mtu"]), (&json!(mac(&scene.network, ROUTER, "s0")), &json!(1500)), "{hop}");
    assert_eq!(named("c0")["next_hops"][0]["refusal"], "not_attached", "{report}");
    let text = doctor(&scene.network, SERVER, &[], &["c0"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("\nc0: veth, MTU 1500, up\n") && text.contains("unreachable: The kernel has no route"),
        "{text}"
    );
    assert!(!text.contains("r0: "), "only what was asked for: {text}");
}

#[test]
fn the_doctor_says_what_each_data_path_would_do() {
    let Some(network) = require(Requirement::NetNamespace, network("off")) else { return };
    let (status, found) = report(&network, SERVER, &["c0"]);
    require(Requirement::Privilege, found["rejected"].as_str().map_or(Ok(()), |why| Err(why.to_owned())));
    let plans = found["interfaces"][0]["plans"].as_array().unwrap();
    let results: Vec<[&Value; 2]> = plans.iter().map(|plan| [&plan["data_path"], &plan["result"]]).collect();
    let expected =
        [["auto", "sockets"], ["native", "native"], ["generic", "generic"]].map(|pair| pair.map(Value::from));
    assert!(results.iter().zip(&expected).all(|(found, expected)| found == &expected.each_ref()), "{plans:?}");
    assert!(plans[0]["reason"].as_str().unwrap().contains("--data-path native"), "{plans:?}");
    assert_eq!((status, results.len()), (Some(0), 3));
    // Both ends in one namespace: the other end is named, and only what is wrong.
    let name = &network.names[CLIENT];
    ip(&format!("-n {name} link add one type veth peer name two")).unwrap();
    ip(&format!("netns exec {name} ethtool -K two gro off tx on")).unwrap();
    let (_, found) = report(&network, CLIENT, &["one"]);
    let advice = found["interfaces"][0]["advice"].to_string();
    assert!(advice.contains("ethtool -K two gro on tx off: the other end of one"), "{advice}");
    assert!(advice.contains("ip link set dev one up"), "{advice}");
}

#[test]
fn the_doctor_finds_a_program_that_no_process_holds() {
    let Some(network) = require(Requirement::NetNamespace, network("off")) else { return };
    let attached = ip(&format!("-n {} link set dev c0 xdp obj {OBJECT} sec xdp", network.names[SERVER]));
    let Some(()) = require(Requirement::Privilege, attached) else { return };
    let (status, found) = report(&network, SERVER, &["c0"]);
    let interface = &found["interfaces"][0];
    assert_eq!((status, &interface["program"]["held_by"]), (Some(1), &json!([])), "{interface}");
    assert!(interface["advice"].to_string().contains("ip link set dev c0 xdp off"), "{interface}");
    assert!(interface["plans"][1]["reason"].as_str().unwrap().contains("already"), "{interface}");
}

#[test]
fn the_doctor_names_missing_privileges_and_interfaces() {
    let Some(network) = require(Requirement::NetNamespace, network("off")) else { return };
    let without = ["setpriv", "--bounding-set", "-bpf,-net_admin,-sys_admin", "--inh-caps", "-all"];
    let output = doctor(&network, SERVER, &without, &["c0"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("privileges  missing: CAP_BPF, CAP_NET_ADMIN\n"), "{text}");
    assert!(text.contains("native      sockets: the kernel denies BPF"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let output = doctor(&network, SERVER, &[], &["none0"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.starts_with("truetick: doctor paths: there is no interface none0"), "{error}");
}
