//! ICMP errors about datagrams to peers.

use std::net::UdpSocket;

use super::{CHANNEL, wait_for_drops};
use crate::server::{PASSWORD, Server, USER};
use testkit::turn_client::Client;

#[test]
fn rfc_r107_reports_a_closed_port_of_a_peer_to_the_client() {
    for (listen, kind, code) in [("127.0.0.1:0", 3, 3), ("[::1]:0", 1, 4)] {
        let flags = ["--listen", listen, "--allow-own-host", "127.0.0.0/8", "--allow-own-host", "::1/128"];
        let server = Server::start(&[&flags[..], &["--icmp-indications", "always"]].concat());
        let mut client = Client::new(server.listen[0], USER, PASSWORD);
        let relayed = client.allocate().unwrap();
        let closed = UdpSocket::bind((relayed.ip(), 0)).unwrap().local_addr().unwrap();
        let open = UdpSocket::bind((relayed.ip(), 0)).unwrap();
        open.set_read_timeout(Some(super::PATIENCE)).unwrap();
        assert_eq!((client.bind_channel(CHANNEL, closed), client.permit(open.local_addr().unwrap())), (0, 0));
        for number in 0..20u8 {
            client.send_channel(CHANNEL, b"to a closed port");
            // RFC 8656 section 18.13: type, code, and error data of 0 without an MTU.
            assert_eq!(client.receive_icmp(), (closed, kind, code, [0; 4]), "{listen}");
            client.send_indication(open.local_addr().unwrap(), &[number]);
            let mut bytes = [0; 8];
            assert_eq!(open.recv_from(&mut bytes).unwrap(), (1, relayed), "the others are not held up");
            assert_eq!(bytes[0], number);
        }
        let farewell = server.stop();
        assert_eq!((farewell.received, farewell.dropped), (client.sent + 20, 0), "{}", farewell.line);
    }
}

#[test]
fn rfc_r107_an_error_without_a_permission_is_not_reported() {
    let server =
        Server::start(&["--listen", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8", "--http", "127.0.0.1:0"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    client.allocate().unwrap();
    let closed = UdpSocket::bind("127.0.0.9:0").unwrap().local_addr().unwrap();
    client.send_indication(closed, b"without a permission");
    wait_for_drops(server.http.unwrap(), "no_permission", 1);
    assert_eq!(client.binding(), client.socket.local_addr().unwrap(), "the answer is the next that comes");
    assert_eq!(server.stop().dropped, 1);
}

/// This client knows nothing of RFC 8489: by default it hears of no error, and what comes next arrives.
#[test]
fn a_client_of_rfc_5766_survives_a_closed_peer_port() {
    let server =
        Server::start(&["--listen", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8", "--http", "127.0.0.1:0"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    let relayed = client.allocate().unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let open = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!((client.bind_channel(CHANNEL, closed), client.permit(open.local_addr().unwrap())), (0, 0));
    client.send_channel(CHANNEL, b"to a closed port");
    wait_for_drops(server.http.unwrap(), "icmp_client", 1);
    open.send_to(b"next", relayed).unwrap();
    assert_eq!(client.receive_indication(), (open.local_addr().unwrap(), b"next".to_vec()));
}
