//! What other servers had wrong and no other group of cases holds; the list is `faults.toml`.

use std::collections::{BTreeMap, BTreeSet};

use super::stage::Stage;
use crate::server::Server;
use crate::wire::NONCE;

/// Local addresses, as `/proc/net/tcp` writes them, at which the process takes connections.
fn listening(pid: u32) -> Vec<String> {
    let sockets = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets = sockets.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let owned: BTreeSet<String> = sockets.filter_map(|link| inode(link.to_str()?)).collect();
    assert!(owned.len() > 100, "its relay sockets: {owned:?}");
    let mut listening = Vec::new();
    for table in ["tcp", "tcp6"] {
        for line in std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap().lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            // State 0A is a listener's.
            if fields[3] == "0A" && owned.contains(fields[9]) {
                listening.push(fields[1].to_owned());
            }
        }
    }
    listening
}

#[test]
fn fault_f01_no_listener_without_configuration() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "4", "--no-tcp"]);
    assert_eq!(listening(server.id()), Vec::<String>::new());
    // Without that flag, TCP clients are accepted at the addresses of `--listen` only.
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "4"]);
    let at: BTreeSet<_> = server.tcp.iter().map(|addr| format!("0100007F:{:04X}", addr.port())).collect();
    assert_eq!(listening(server.id()).into_iter().collect::<BTreeSet<_>>(), at);
    assert_eq!(at.len(), 1);
}

fn inode(link: &str) -> Option<String> {
    Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

#[test]
fn fault_f02_http_at_the_turn_port() {
    let stage = Stage::new();
    let caller = stage.caller();
    let mut requests = Vec::new();
    for length in ["0", "10", "4294967295", "18446744073709551615", "-1"] {
        for verb in ["POST", "GET", "PUT", "HEAD", "OPTIONS"] {
            let head = format!("{verb} / HTTP/1.1\r\nHost: turn\r\nContent-Length: {length}\r\n\r\n");
            requests.push(head.clone().into_bytes());
            requests.push([head.as_bytes(), &[b'a'; 50_000]].concat());
        }
    }
    // The first letter decides what it is taken for: G, H and O are ChannelData's.
    let names = ["not_stun", "method", "no_allocation", "channel_length"];
    stage.dropped(&caller, &names, &requests);
    stage.probe();
}

/// The cookie and the second of issue are for all to know; the rest of a nonce has to look like nothing.
#[test]
fn fault_f06_nonces_cannot_be_foreseen() {
    let stage = Stage::new();
    let mut of_addr = BTreeMap::new();
    for host in 1..=8u8 {
        for _ in 0..64 {
            let mut caller = stage.caller_from([127, 0, 1, host].into());
            let bare = caller.request(crate::wire::REFRESH);
            let nonce = caller.exchange(&bare.0).get(NONCE).unwrap().to_vec();
            of_addr.insert(caller.socket.local_addr().unwrap(), nonce);
        }
    }
    let nonces: BTreeSet<_> = of_addr.values().cloned().collect();
    assert_eq!(nonces.len(), of_addr.len(), "each address and port has its own");
    assert!(nonces.len() > 450, "the system gives a port to one after the other");
    let length = nonces.first().unwrap().len();
    let drawn: Vec<_> = (0..length).filter(|at| letters_at(&nonces, *at).len() > 60).collect();
    assert!(drawn.len() * 6 >= 64, "at least 64 bits of it are keyed: positions {drawn:?}");
    for &at in &drawn {
        let mut counts = [0f64; 256];
        nonces.iter().for_each(|nonce| counts[usize::from(nonce[at])] += 1.0);
        let expected = nonces.len() as f64 / 64.0;
        let letters = letters_at(&nonces, at);
        let absent = (64 - letters.len()) as f64 * expected;
        let present = letters.iter().map(|letter| (counts[usize::from(*letter)] - expected).powi(2) / expected);
        // 63 degrees of freedom: above 140 in less than one of ten million.
        let chi_square = present.sum::<f64>() + absent;
        assert!(chi_square < 140.0, "position {at}: {chi_square}");
    }
    stage.probe();
}

fn letters_at(nonces: &BTreeSet<Vec<u8>>, at: usize) -> BTreeSet<u8> {
    nonces.iter().map(|nonce| nonce[at]).collect()
}
