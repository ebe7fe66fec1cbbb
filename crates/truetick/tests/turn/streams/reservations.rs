//! Reserved ports, claimed over every transport at every worker.

use std::io::{Read, Write};
use std::net::SocketAddr;

use testkit::turn_client::{Client, EVEN_PORT, RESERVATION_TOKEN};

use super::peer;
use crate::certificates::Certificates;
use crate::server::{PASSWORD, Server, USER};
use crate::stream_client::{StreamClient, connect, connect_tls};

/// The second user.
const BOB: &str = "bob";
const BOB_PASSWORD: &str = "pa55";
/// Connections of each transport: enough for the kernel to spread them over eight workers.
const CLAIMS: usize = 12;

fn start(certificates: &Certificates, workers: &str, flags: &[&str]) -> Server {
    let files = certificates.flags();
    let bob = format!("{BOB}:{BOB_PASSWORD}");
    let all = ["--listen", "127.0.0.1:0", "--workers", workers, "--allow-own-host", "127.0.0.0/8", "--user", &bob];
    Server::start(&[&all[..], &files.each_ref().map(String::as_str), flags].concat())
}

/// Reserves a port over UDP; the holder, the port and its token.
fn reserve(server: &Server) -> (Client, SocketAddr, Vec<u8>) {
    let mut holder = Client::new(server.listen[0], USER, PASSWORD);
    let granted = holder.allocate_with(&[(EVEN_PORT, &[0x80])]).unwrap();
    let even = granted.relayed[0];
    (holder, SocketAddr::new(even.ip(), even.port() + 1), granted.token.unwrap())
}

/// Claims the port on a connection, and relays on it both ways.
fn claim_and_relay<S: Read + Write>(client: &mut StreamClient<S>, reserved: SocketAddr, token: &[u8]) {
    assert_eq!(client.allocate_with(RESERVATION_TOKEN, token), Ok((reserved, None)));
    let peer = peer();
    let peer_addr = peer.local_addr().unwrap();
    assert_eq!(client.permit(peer_addr), 0);
    client.send_indication(peer_addr, b"out");
    assert_eq!(peer.recv_from(&mut [0; 8]).unwrap(), (3, reserved));
    peer.send_to(b"in", reserved).unwrap();
    assert_eq!(client.receive_indication(), (peer_addr, b"in".to_vec()));
    assert_eq!(client.refresh(600), 0);
}

/// The kernel chooses the worker of each connection.
#[test]
fn rfc_r086_a_token_is_valid_over_tcp_and_tls_at_every_worker() {
    let certificates = Certificates::new();
    let tls = certificates.client(rustls::ALL_VERSIONS, &[]);
    for workers in ["2", "8"] {
        let server = start(&certificates, workers, &[]);
        let mut holders = Vec::new();
        for _ in 0..CLAIMS {
            let (holder, reserved, token) = reserve(&server);
            let mut client = StreamClient::new(connect(server.tcp[0]));
            claim_and_relay(&mut client, reserved, &token);
            let mut late = Client::new(server.listen[0], USER, PASSWORD);
            assert_eq!(late.allocate_with(&[(RESERVATION_TOKEN, &token)]).err(), Some(508), "used");
            let (second, reserved, token) = reserve(&server);
            let mut client = StreamClient::new(connect_tls(server.tls[0], &tls).unwrap());
            claim_and_relay(&mut client, reserved, &token);
            holders.extend([holder, late, second]);
        }
        assert_eq!(server.stop().dropped, 0);
    }
}

/// EVEN-PORT on one connection, the claims on others: also by another user, who pays from then on.
#[test]
fn rfc_r086_a_port_reserved_over_tcp_is_claimed_over_tcp_tls_and_udp() {
    let certificates = Certificates::new();
    let tls = certificates.client(rustls::ALL_VERSIONS, &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truetick.toml");
    std::fs::write(&path, "[turn.quotas]\nuser_allocations = 2\n").unwrap();
    let server = start(&certificates, "8", &["--config", path.to_str().unwrap()]);
    for _ in 0..CLAIMS {
        for transport in 0..3 {
            let mut holder = StreamClient::new(connect(server.tcp[0]));
            let (even, token) = holder.allocate_with(EVEN_PORT, &[0x80]).unwrap();
            let (reserved, token) = (SocketAddr::new(even.ip(), even.port() + 1), token.unwrap());
            let mut more = StreamClient::new(connect(server.tcp[0]));
            assert_eq!(more.allocate(), Err(486), "the reserved port is the second one of its user");
            match transport {
                0 => {
                    let stream = connect(server.tcp[0]);
                    let mut bob = StreamClient::of_user(stream, BOB, BOB_PASSWORD);
                    claim_and_relay(&mut bob, reserved, &token);
                    assert_eq!(bob.refresh(0), 0);
                }
                1 => {
                    let stream = connect_tls(server.tls[0], &tls).unwrap();
                    let mut bob = StreamClient::of_user(stream, BOB, BOB_PASSWORD);
                    claim_and_relay(&mut bob, reserved, &token);
                    assert_eq!(bob.refresh(0), 0);
                }
                _ => {
                    let mut bob = Client::new(server.listen[0], BOB, BOB_PASSWORD);
                    let granted = bob.allocate_with(&[(RESERVATION_TOKEN, &token)]).unwrap();
                    assert_eq!(granted.relayed, [reserved]);
                    assert_eq!(bob.refresh(0), 0);
                }
            }
            assert!(more.allocate().is_ok(), "bob has paid");
            assert_eq!((more.refresh(0), holder.refresh(0)), (0, 0));
        }
    }
    assert_eq!(server.stop().dropped, 0);
}

/// A request without valid credentials does not use a token up, whatever it costs its sender.
#[test]
fn a_token_outlives_requests_without_credentials() {
    let certificates = Certificates::new();
    let server = start(&certificates, "8", &[]);
    let (_holder, reserved, token) = reserve(&server);
    for _ in 0..CLAIMS {
        let stream = connect(server.tcp[0]);
        let mut stranger = StreamClient::of_user(stream, USER, "wrong");
        assert_eq!(stranger.allocate_with(RESERVATION_TOKEN, &token), Err(401));
        let mut stranger = Client::new(server.listen[0], USER, "wrong");
        assert_eq!(stranger.allocate_with(&[(RESERVATION_TOKEN, &token)]).err(), Some(401));
    }
    claim_and_relay(&mut StreamClient::new(connect(server.tcp[0])), reserved, &token);
    assert_eq!(server.stop().dropped, 0);
}
