//! The built binary: a call goes on after its credential has expired, over UDP, TCP and TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::server::Server;
use crate::stream_client::{StreamClient, connect, connect_tls};
use testkit::turn_client::Client;

const PATIENCE: Duration = Duration::from_secs(60);
const CHANNEL: u16 = 0x4000;

/// A server with a shared secret and a certificate.
struct Operator {
    server: Server,
    _secrets: TempDir,
    certificates: Certificates,
}

impl Operator {
    fn start(flags: &[&str]) -> Self {
        let secrets = tempfile::tempdir().unwrap();
        let path = secrets.path().join("secrets");
        std::fs::write(&path, "north\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let certificates = Certificates::new();
        let files = certificates.flags();
        let usual = ["--listen", "127.0.0.1:0", "--workers", "1", "--allow-own-host", "127.0.0.0/8"];
        let of_files = ["--auth-secret-file", path.to_str().unwrap()];
        let tls = files.each_ref().map(String::as_str);
        let server = Server::start(&[&usual[..], &of_files, &tls, flags].concat());
        Self { server, _secrets: secrets, certificates }
    }

    fn listen(&self) -> SocketAddr {
        self.server.listen[0]
    }

    /// Waits until the server takes `credential` for expired, by the clock of its only worker.
    fn wait_for_expiry(&self, credential: &Credential) {
        let started = Instant::now();
        let mut client = Client::new(self.listen(), &credential.name, &credential.password);
        loop {
            match client.refresh(0) {
                401 => return,
                code => assert_eq!(code, 437, "it has no allocation"),
            }
            assert!(started.elapsed() < PATIENCE, "it never expires");
        }
    }
}

struct Credential {
    name: String,
    password: String,
}

impl Credential {
    fn of(id: &str, lifetime_s: u64) -> Self {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let name = format!("{}:{id}", unix_s + lifetime_s);
        let mut mac = Hmac::<Sha1>::new_from_slice(b"north").unwrap();
        mac.update(name.as_bytes());
        Self { name, password: BASE64.encode(mac.finalize().into_bytes()) }
    }
}

fn peer() -> UdpSocket {
    let peer = UdpSocket::bind("127.0.0.2:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    peer
}

/// The first Refresh, CreatePermission and ChannelBind after the expiry, and a payload each way.
fn go_on<S: Read + Write>(client: &mut StreamClient<S>, peer: &UdpSocket) {
    let addr = peer.local_addr().unwrap();
    assert_eq!((client.refresh(600), client.permit(addr), client.bind_channel(CHANNEL, addr)), (0, 0, 0));
    client.send_channel(CHANNEL, b"out");
    let (_, relayed) = peer.recv_from(&mut [0; 8]).unwrap();
    peer.send_to(b"in", relayed).unwrap();
    assert_eq!(client.receive_channel(), (CHANNEL, b"in".to_vec()));
}

#[test]
fn calls_over_udp_tcp_and_tls_outlive_their_credential() {
    let operator = Operator::start(&[]);
    let (credential, peer) = (Credential::of("ann", 3), peer());
    let Credential { name, password } = &credential;
    let tls = operator.certificates.client(rustls::ALL_VERSIONS, &[]);
    let mut over_udp = Client::new(operator.listen(), name, password);
    let mut over_tcp = StreamClient::of_user(connect(operator.server.tcp[0]), name, password);
    let mut over_tls = StreamClient::of_user(connect_tls(operator.server.tls[0], &tls).unwrap(), name, password);
    over_udp.allocate().unwrap();
    over_tcp.allocate().unwrap();
    over_tls.allocate().unwrap();

    operator.wait_for_expiry(&credential);
    let addr = peer.local_addr().unwrap();
    assert_eq!((over_udp.refresh(600), over_udp.permit(addr), over_udp.bind_channel(CHANNEL, addr)), (0, 0, 0));
    over_udp.send_channel(CHANNEL, b"out");
    let (_, relayed) = peer.recv_from(&mut [0; 8]).unwrap();
    peer.send_to(b"in", relayed).unwrap();
    assert_eq!(over_udp.receive_channel(), (CHANNEL, b"in".to_vec()));
    go_on(&mut over_tcp, &peer);
    go_on(&mut over_tls, &peer);
    assert_eq!(Client::new(operator.listen(), name, password).allocate(), Err(401), "a new call needs a new one");
    assert_eq!(operator.server.stop().dropped, 0);
}

#[test]
fn strict_expiry_ends_a_call_with_its_credential() {
    let operator = Operator::start(&["--strict-expiry"]);
    let credential = Credential::of("ann", 3);
    let mut client = Client::new(operator.listen(), &credential.name, &credential.password);
    client.allocate().unwrap();
    operator.wait_for_expiry(&credential);
    let addr = peer().local_addr().unwrap();
    assert_eq!((client.refresh(600), client.permit(addr), client.bind_channel(CHANNEL, addr)), (401, 401, 401));
}
