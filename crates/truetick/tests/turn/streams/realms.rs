//! Several realms over TCP, over TLS, and behind a balancer that speaks the PROXY protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tempfile::TempDir;

use super::peer;
use crate::certificates::Certificates;
use crate::operators::operated::wait;
use crate::server::{PASSWORD, Server};
use crate::stream_client::{StreamClient, connect, connect_from};

const ORIGIN: &str = "https://b.example";
/// A listed balancer.
const BALANCER: [u8; 4] = [127, 0, 0, 2];
/// Two listeners, the second one for the realm `a.example`. The quotas of every realm differ.
const CONFIGURATION: &str = "[turn]
listen = [\"127.0.0.1:0\", \"127.0.0.3:0\"]
relay_ip = [\"127.0.0.1\"]
allow_own_host = [\"127.0.0.0/8\"]
proxy_protocol_from = [\"127.0.0.2\"]
workers = 2
quotas = { user_allocations = 4 }
[[turn.realms]]
name = \"a.example\"
listen = [\"127.0.0.3:0\"]
user = [\"ann:a-secret\", \"eve:a-secret\", \"kim:a-secret\"]
user_allocations = 1
allocations = 2
[[turn.realms]]
name = \"b.example\"
origins = [\"https://b.example\"]
user = [\"ann:b-secret\", \"eve:b-secret\"]
user_allocations = 2
allocations = 3
";
/// The password of `ann` in each realm.
const PASSWORDS: [&str; 3] = [PASSWORD, "a-secret", "b-secret"];

/// How a client reaches a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tcp,
    Tls,
    /// Behind a balancer whose header names an address that nothing listens on.
    ProxiedTcp,
    ProxiedTls,
    /// Behind a balancer whose header names the listener of another realm.
    ProxiedToOther,
}

const WAYS: [Way; 5] = [Way::Tcp, Way::Tls, Way::ProxiedTcp, Way::ProxiedTls, Way::ProxiedToOther];

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

type Client = StreamClient<Box<dyn Stream>>;

/// A server, and the way on which its clients come.
struct Scene {
    server: Server,
    certificates: Certificates,
    way: Way,
    /// The port of the next client in a header: two connections of one client would be one.
    port: AtomicU16,
    _folder: TempDir,
}

impl Scene {
    fn new(way: Way) -> Self {
        let (certificates, folder) = (Certificates::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("truetick.toml");
        std::fs::write(&path, CONFIGURATION).unwrap();
        let files = certificates.flags();
        let flags = [&["--config", path.to_str().unwrap()], &files.each_ref().map(String::as_str)[..]].concat();
        let server = Server::start(&flags);
        Self { server, certificates, way, port: AtomicU16::new(5_000), _folder: folder }
    }

    /// The listener for the default realm and for origins, and the one of the realm `a.example`.
    fn listeners(&self) -> [SocketAddr; 2] {
        ["127.0.0.1", "127.0.0.3"].map(|ip| {
            let of_ip = |addr: &&SocketAddr| addr.ip().to_string() == ip;
            *self.server.tcp.iter().find(of_ip).expect("a listener")
        })
    }

    /// A connection to a listener whose header, if the way has one, names `destination`.
    fn proxied(&self, listener: SocketAddr, destination: SocketAddr) -> TcpStream {
        let mut stream = connect_from(BALANCER, listener);
        let client = self.port.fetch_add(1, Ordering::Relaxed);
        let (to, to_port) = (destination.ip(), destination.port());
        stream.write_all(format!("PROXY TCP4 192.0.2.7 {to} {client} {to_port}\r\n").as_bytes()).unwrap();
        stream
    }

    fn client_at(&self, listener: SocketAddr, (user, password): (&str, &str)) -> Client {
        let nowhere = SocketAddr::from(([198, 51, 100, 2], 3_478));
        let other = self.listeners().into_iter().find(|other| *other != listener).unwrap();
        let stream = match self.way {
            Way::Tcp | Way::Tls => connect(listener),
            Way::ProxiedTcp | Way::ProxiedTls => self.proxied(listener, nowhere),
            Way::ProxiedToOther => self.proxied(listener, other),
        };
        let stream: Box<dyn Stream> = match self.way {
            Way::Tcp | Way::ProxiedTcp | Way::ProxiedToOther => Box::new(stream),
            Way::Tls | Way::ProxiedTls => {
                let config = self.certificates.client(rustls::ALL_VERSIONS, &[]);
                // The certificate is for another address than that of the second listener.
                let name = ServerName::try_from("localhost").unwrap();
                Box::new(StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream))
            }
        };
        StreamClient::of_user(stream, user, password)
    }

    /// A client that selects the default realm, `a.example` or `b.example`.
    fn client(&self, realm: usize, user: &str, password: &str) -> Client {
        let [first, second] = self.listeners();
        match realm {
            0 => self.client_at(first, (user, password)),
            1 => self.client_at(second, (user, password)),
            _ => self.client_at(first, (user, password)).of_origin(ORIGIN),
        }
    }
}

#[test]
fn listener_and_origin_choose_the_realm_of_the_challenge() {
    for way in WAYS {
        let scene = Scene::new(way);
        let [first, second] = scene.listeners();
        let at = |listener| scene.client_at(listener, ("ann", "none"));
        assert_eq!(at(first).challenge(), "truetick", "{way:?}");
        assert_eq!(at(second).challenge(), "a.example", "{way:?}");
        assert_eq!(at(first).of_origin(ORIGIN).challenge(), "b.example", "{way:?}");
        assert_eq!(at(first).of_origin("https://c.example").challenge(), "truetick", "{way:?}");
        assert_eq!(at(second).of_origin(ORIGIN).challenge(), "a.example", "{way:?}: the listener counts first");
    }
}

#[test]
fn a_password_is_for_its_realm_only() {
    for way in WAYS {
        let scene = Scene::new(way);
        for (index, password) in PASSWORDS.into_iter().enumerate() {
            for realm in 0..PASSWORDS.len() {
                let expected = if realm == index { Ok(()) } else { Err(401) };
                assert_eq!(scene.client(realm, "ann", password).log_in(), expected, "{way:?} {realm} {password}");
            }
        }
        // Realms that the listener does not serve.
        let [first, second] = scene.listeners();
        for (listener, realm, password) in
            [(first, "a.example", "a-secret"), (second, "b.example", "b-secret"), (second, "truetick", PASSWORD)]
        {
            let mut client = scene.client_at(listener, ("ann", password));
            client.challenge();
            client.log_in_as(realm, "ann", password);
            assert_eq!(client.allocate(), Err(401), "{way:?}: {realm} at {listener}");
        }
    }
}

#[test]
fn an_allocation_relays_and_stays_with_its_realm() {
    for way in WAYS {
        let scene = Scene::new(way);
        for (realm, password) in PASSWORDS.into_iter().enumerate() {
            let (mut client, peer) = (scene.client(realm, "ann", password), peer());
            client.allocate().unwrap();
            assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0, "{way:?} {realm}");
            let name = if realm == 2 { ("truetick", PASSWORD) } else { ("b.example", "b-secret") };
            let own = ["truetick", "a.example", "b.example"][realm];
            client.log_in_as(name.0, "ann", name.1);
            // A listener with a realm does not know the credentials of another.
            let expected = if realm == 1 { 401 } else { 441 };
            assert_eq!(client.refresh(0), expected, "{way:?} {realm}");
            client.log_in_as(own, "ann", password);
            assert_eq!(client.refresh(600), 0, "{way:?} {realm}");
            client.send_channel(0x4000, b"as before");
            let mut bytes = [0; 16];
            assert_eq!(peer.recv_from(&mut bytes).unwrap().0, 9, "{way:?} {realm}");
        }
    }
}

#[test]
fn quotas_count_for_a_realm_and_for_each_of_its_users() {
    for way in WAYS {
        let scene = Scene::new(way);
        let mut kept = Vec::new();
        for (realm, user, expected) in [
            (1, "ann", Ok(())),
            (1, "ann", Err(486)),
            (1, "eve", Ok(())),
            (1, "kim", Err(486)),
            (2, "ann", Ok(())),
            (2, "ann", Ok(())),
            (2, "ann", Err(486)),
            (2, "eve", Ok(())),
            (2, "eve", Err(486)),
            (0, "ann", Ok(())),
            (0, "ann", Ok(())),
            (0, "ann", Ok(())),
            (0, "ann", Ok(())),
            (0, "ann", Err(486)),
        ] {
            let mut client = scene.client(realm, user, PASSWORDS[realm]);
            let number = kept.len();
            assert_eq!(client.allocate().map(|_| ()), expected, "{way:?}: {user} of realm {realm}, client {number}");
            kept.push(client);
        }
        // A connection that closes ends its allocation: its place is free for the realm again.
        drop(kept.remove(0));
        wait("a place in the realm", || scene.client(1, "kim", "a-secret").log_in().is_ok());
    }
}
