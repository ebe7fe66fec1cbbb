//! A reload with other quotas, relay addresses and relay ports, while allocations live.

use std::net::{IpAddr, SocketAddr};

use testkit::turn_client::Client;

use super::operated::{Operated, peer, relays, wait};

/// Ports below those that the kernel chooses; no other test has them.
const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\nrelay_ip = [\"127.0.0.1\"]\nrelay_ports = \"23200-23999\"";

/// A client with an allocation and a channel to a peer, which relays.
struct Live {
    client: Client,
    peer: std::net::UdpSocket,
}

impl Live {
    fn start(server: &Operated) -> (Self, SocketAddr) {
        let (mut client, peer) = (server.client("ann"), peer());
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        (Self { client, peer }, relayed)
    }

    fn check(&mut self) {
        relays(&mut self.client, 0x4000, &self.peer, b"on it goes");
        assert_eq!(self.client.refresh(600), 0);
    }

    /// Sends 20 datagrams, and returns how many arrive.
    fn passed(&mut self) -> usize {
        (0..20).for_each(|_| self.client.send_channel(0x4000, b"counted"));
        // The first answer may leave before what was relayed in the same round, the second one not.
        assert_eq!((self.client.refresh(600), self.client.refresh(600)), (0, 0));
        self.peer.set_nonblocking(true).unwrap();
        let arrived = std::iter::repeat_with(|| self.peer.recv_from(&mut [0; 64])).take_while(Result::is_ok).count();
        self.peer.set_nonblocking(false).unwrap();
        arrived
    }
}

/// The relayed address of an allocation that ends at once.
fn relayed(server: &Operated) -> Result<SocketAddr, u16> {
    let mut client = server.client("bob");
    let relayed = client.allocate()?;
    assert_eq!(client.refresh(0), 0);
    Ok(relayed)
}

#[test]
fn a_quota_of_packets_counts_for_allocations_that_live() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let (mut live, _) = Live::start(&server);
    assert_eq!(live.passed(), 20);
    server.edit(|text| text + "\n[turn.quotas]\nuser_packets_per_second = 5\n");
    assert!(server.reload().contains("configuration reloaded"));
    assert!((5..=10).contains(&live.passed()), "a second's worth, and what time adds");
    server.edit(|text| text.replace("user_packets_per_second = 5\n", ""));
    assert!(server.reload().contains("configuration reloaded"));
    assert_eq!(live.passed(), 20);
}

#[test]
fn new_allocations_get_the_new_ports_and_more_of_them() {
    let server = Operated::start(&KEYS.replace("23200-23999", "23000-23003"), &[]);
    let (mut live, first) = Live::start(&server);
    assert!((23_000..=23_003).contains(&first.port()));
    assert_eq!((0..8).find_map(|_| relayed(&server).err()), Some(486), "the user's share: used ports rest");
    server.edit(|text| text.replace("23000-23003", "23100-23149"));
    assert!(server.reload().contains("configuration reloaded"));
    let ports: Vec<u16> = (0..30).map(|_| relayed(&server).unwrap().port()).collect();
    assert!(ports.iter().all(|port| (23_100..=23_149).contains(port)), "{ports:?}");
    live.check();
    // A range in which no port is free is refused, and nothing changes.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    server.edit(|text| text.replace("23100-23149", &format!("{port}-{port}")) + "\n");
    let reported = server.reload();
    assert!(reported.contains("not reloaded") && reported.contains("cannot bind a relay socket on 127.0.0.1"));
    assert!((23_100..=23_149).contains(&relayed(&server).unwrap().port()));
    live.check();
}

#[test]
fn relay_addresses_come_and_go_and_a_wrong_one_changes_nothing() {
    let server = Operated::start(KEYS, &[]);
    let (mut live, _) = Live::start(&server);
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let (one, three) = (ip("127.0.0.1"), ip("127.0.0.3"));
    let used = |count: usize| -> Vec<IpAddr> { (0..count).map(|_| relayed(&server).unwrap().ip()).collect() };
    assert!(used(10).iter().all(|used| *used == one));
    let change = |was: &str, is: &str| {
        server.edit(|text| text.replace(was, is));
        server.reload()
    };
    // TEST-NET-1 (RFC 5737) is no address of this machine.
    let refused = change("[\"127.0.0.1\"]", "[\"127.0.0.1\", \"192.0.2.1\"]");
    assert!(
        refused.contains("not reloaded") && refused.contains("cannot bind a relay socket on 192.0.2.1"),
        "{refused}"
    );
    assert!(used(10).iter().all(|used| *used == one));
    assert!(change("192.0.2.1", "127.0.0.3").contains("configuration reloaded"));
    wait("the second address", || relayed(&server).unwrap().ip() == three);
    let (mut second, _) = loop {
        let (found, relayed) = Live::start(&server);
        if relayed.ip() == three {
            break (found, relayed);
        }
    };
    assert!(change("[\"127.0.0.1\", \"127.0.0.3\"]", "[\"127.0.0.1\"]").contains("configuration reloaded"));
    assert!(used(20).iter().all(|used| *used == one));
    second.check();
    assert!(change("[\"127.0.0.1\"]", "[\"127.0.0.3\"]").contains("configuration reloaded"));
    assert!(used(20).iter().all(|used| *used == three));
    // What clients and peers see follows, too.
    assert!(
        change("[\"127.0.0.3\"]", "[\"127.0.0.3\"]\nexternal_ip = [\"203.0.113.9\"]")
            .contains("configuration reloaded")
    );
    assert!(used(5).iter().all(|used| *used == ip("203.0.113.9")));
    live.check();
    second.check();
}
