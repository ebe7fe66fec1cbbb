//! coturn's client through the kernel path, over both families: every packet comes back, and nearly all in the kernel.

use std::process::{Child, Command, Stdio};

use testkit::{Requirement, find_program, require};

use super::scene::{CLIENT, Ends, IPV4, IPV6, PEER, Scene};
use crate::operators::operated::wait;

const CLIENTS: u64 = 4;
const PAYLOADS_EACH: u64 = 500;
const PORT: &str = "3480";

/// Debian's `turnutils_peer`; ends when dropped.
struct Echo(Child);

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn relays_nearly_all_in_the_kernel(ends: &Ends, family: &str) {
    for program in ["turnutils_uclient", "turnutils_peer"] {
        let Some(_) = require(Requirement::Program, find_program(program, "coturn")) else { return };
    }
    let Some(scene) = Scene::require_proven(ends, "rfc5766_channel_numbers = true") else { return };
    let payloads = CLIENTS * PAYLOADS_EACH;
    let _echo = scene.network.on(PEER, || {
        let mut peer = Command::new("turnutils_peer");
        Echo(peer.args(["-L", ends.peer, "-p", PORT]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    });
    let in_kernel = scene.kernel_relayed();
    let all = scene.counted().iter().sum::<u64>() + 2 * payloads;
    let output = scene.network.on(CLIENT, || {
        let mut uclient = Command::new("turnutils_uclient");
        uclient.args([
            "-u",
            "ann",
            "-w",
            "ann-secret",
            "-c",
            "-l",
            "170",
            "-z",
            "5",
            family,
            "-e",
            ends.peer,
            "-r",
            PORT,
        ]);
        uclient.args(["-m", &CLIENTS.to_string(), "-n", &PAYLOADS_EACH.to_string()]);
        uclient.args(["-L", ends.client, "-p", "3478"]).arg(scene.server.listen.ip().to_string()).output().unwrap()
    });
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    assert!(report.contains(&format!("tot_send_msgs={payloads}, tot_recv_msgs={payloads}")), "{report}");
    assert!(report.contains("Total lost packets 0 (0.000000%), total send dropped 0 (0.000000%)"), "{report}");
    wait("every payload is counted once each way", || scene.counted().iter().sum::<u64>() == all);
    let in_kernel = scene.counted()[1] - in_kernel;
    assert!(in_kernel * 10 > 2 * payloads * 9, "{in_kernel} of {}", 2 * payloads);
}

#[test]
fn uclient_is_relayed_in_the_kernel_over_ipv4() {
    relays_nearly_all_in_the_kernel(&IPV4, "-X");
}

#[test]
fn uclient_is_relayed_in_the_kernel_over_ipv6() {
    relays_nearly_all_in_the_kernel(&IPV6, "-x");
}
