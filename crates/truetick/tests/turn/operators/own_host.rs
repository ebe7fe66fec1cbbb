//! Services of this host are no peers, unless the operator names them.

use std::net::{SocketAddr, UdpSocket};

use testkit::turn_client::REQUESTED_ADDRESS_FAMILY;
use testkit::{Requirement, require};

use super::namespaces::{Network, ip};
use super::operated::{Operated, PATIENCE, relays, wait};

#[test]
fn an_address_is_no_peer_while_it_is_this_hosts() {
    let lines = [
        "-n {h} link add one type veth peer name two",
        "-n {h} addr add 10.77.0.2/24 dev one",
        "-n {h} link set one up",
        "-n {h} link set two up",
    ];
    let Some(network) = require(Requirement::NetNamespace, Network::make(&["h"], &lines)) else { return };
    let keys = "relay_ip = [\"10.77.0.2\"]\nallow_peer = [\"10.0.0.0/8\", \"127.0.0.0/8\"]\nno_tcp = true";
    network.on(0, || {
        let server = Operated::start_on("10.77.0.2:3478", keys);
        let name = &network.names[0];
        let mut client = server.client("ann");
        let relayed = client.allocate().unwrap();
        let [moved, own, loopback] =
            ["10.9.0.7:53", "10.77.0.2:53", "127.0.0.1:53"].map(|addr| addr.parse::<SocketAddr>().unwrap());
        assert_eq!((client.permit(moved), client.bind_channel(0x4000, moved)), (0, 0));
        assert_eq!((client.bind_channel(0x4001, own), client.bind_channel(0x4001, loopback)), (403, 403));
        ip(&format!("-n {name} addr add 10.9.0.7/24 dev two")).unwrap();
        wait("the address is denied", || client.permit(moved) == 403);
        let service = UdpSocket::bind(moved).unwrap();
        client.send_channel(0x4000, b"through the channel of before");
        // Had it gone through, it would be there before the answer to the request behind it is here.
        assert_eq!((client.bind_channel(0x4000, moved), client.refresh(600)), (403, 0));
        service.set_nonblocking(true).unwrap();
        assert_eq!(service.recv_from(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        let counted = "\ntruetick_turn_peers_denied_total{rule=\"deny own host\"} ";
        wait("the rule's count", || server.ask("GET", "/metrics", None).body.contains(counted));
        drop(service);
        ip(&format!("-n {name} addr del 10.9.0.7/24 dev two")).unwrap();
        wait("the address is allowed", || client.permit(moved) == 0);
        // Relayed addresses of this server stay reachable.
        let mut other = server.client("bob");
        let other_relayed = other.allocate().unwrap();
        assert_eq!((client.bind_channel(0x4003, other_relayed), other.bind_channel(0x4003, relayed)), (0, 0));
        client.send_channel(0x4003, b"to the other");
        assert_eq!(other.receive_channel(), (0x4003, b"to the other".to_vec()));
    });
}

/// The same over IPv6: addresses come and go by netlink there too.
#[test]
fn an_ipv6_address_is_no_peer_while_it_is_this_hosts() {
    let lines = [
        "-n {h} link add one type veth peer name two",
        "-n {h} addr add 2a00:77::2/64 dev one nodad",
        "-n {h} link set one up",
        "-n {h} link set two up",
    ];
    let Some(network) = require(Requirement::NetNamespace, Network::make(&["h"], &lines)) else { return };
    network.on(0, || {
        let server = Operated::start_on("[2a00:77::2]:3478", "relay_ip = [\"2a00:77::2\"]\nno_tcp = true");
        let name = &network.names[0];
        let mut client = server.client("ann");
        client.allocate_with(&[(REQUESTED_ADDRESS_FAMILY, &[2, 0, 0, 0])]).unwrap();
        let [moved, own, loopback] =
            ["[2a00:9::7]:53", "[2a00:77::2]:53", "[::1]:53"].map(|addr| addr.parse::<SocketAddr>().unwrap());
        assert_eq!((client.permit(moved), client.bind_channel(0x4000, moved)), (0, 0));
        assert_eq!((client.bind_channel(0x4001, own), client.bind_channel(0x4001, loopback)), (403, 403));
        ip(&format!("-n {name} addr add 2a00:9::7/64 dev two nodad")).unwrap();
        wait("the address is denied", || client.permit(moved) == 403);
        let service = UdpSocket::bind(moved).unwrap();
        client.send_channel(0x4000, b"through the channel of before");
        // Had it gone through, it would be there before the answer to the request behind it is here.
        assert_eq!((client.bind_channel(0x4000, moved), client.refresh(600)), (403, 0));
        service.set_nonblocking(true).unwrap();
        assert_eq!(service.recv_from(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop(service);
        ip(&format!("-n {name} addr del 2a00:9::7/64 dev two")).unwrap();
        wait("the address is allowed", || client.permit(moved) == 0);
    });
}

#[test]
fn a_named_port_of_this_host_is_a_peer_and_no_other_one() {
    let service = UdpSocket::bind("127.0.0.2:0").unwrap();
    service.set_read_timeout(Some(PATIENCE)).unwrap();
    let named = service.local_addr().unwrap();
    let other = UdpSocket::bind("127.0.0.2:0").unwrap();
    let unnamed = other.local_addr().unwrap();
    let closed = Operated::start("allow_peer = [\"127.0.0.0/8\", \"0.0.0.0/0\"]", &[]);
    let mut client = closed.client("ann");
    client.allocate().unwrap();
    assert_eq!((client.permit(named), client.bind_channel(0x4000, named)), (403, 403), "allow_peer is not enough");
    drop(closed);
    let server = Operated::start(&format!("allow_own_host = [\"{named}\"]"), &[]);
    let mut client = server.client("ann");
    let relayed = client.allocate().unwrap();
    assert_eq!((client.permit(named), client.permit(unnamed)), (0, 0), "a permission is for the address");
    assert_eq!((client.bind_channel(0x4000, named), client.bind_channel(0x4001, unnamed)), (0, 403));
    relays(&mut client, 0x4000, &service, b"in");
    client.send_indication(unnamed, b"dropped");
    other.send_to(b"dropped too", relayed).unwrap();
    service.send_to(b"out", relayed).unwrap();
    assert_eq!(client.receive_channel(), (0x4000, b"out".to_vec()));
    let dropped = || server.ask("GET", "/api/v1/turn/drops", None).json()["drops"].to_string();
    wait("both are counted", || dropped().contains("\"count\":2,\"name\":\"peer_denied\""));
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.recv_from(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
