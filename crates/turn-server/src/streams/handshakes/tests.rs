use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;

use tt_model::Nanos;
use tt_net::Inbox;
use tt_net::stream::StreamListener;
use tt_turn::config::{Capacity, Config};
use tt_turn::credential::Secrets;
use tt_turn::shared::{Quotas, Shared};
use tt_turn::{Server, WorkerId};
use turn_config::CertificateFiles;

use super::*;
use crate::listener_id::ListenerId;
use crate::poll_key::stream_of;
use crate::streams::{Sources, StreamPlan, Streams, Takes, read_certificates};

const PATIENCE: Duration = Duration::from_secs(20);
const BINDING: &[u8] = b"\x00\x01\x00\x00\x21\x12\xA4\x42AAAABBBBCCCC";
/// The first bytes of a ClientHello.
const GREETING: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/// A worker's streams whose threads of handshakes do not run.
struct Stage {
    _folder: tempfile::TempDir,
    thread: HandshakeThread,
    streams: Streams,
    server: Server,
    poller: Poller,
    inbox: Inbox,
    addr: SocketAddr,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files = CertificateFiles { cert: folder.path().join("cert"), key: folder.path().join("key") };
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let limits = StreamLimits::default();
        let (pool, mut threads) = HandshakePool::new(&limits).unwrap();
        let certificates = Arc::new(Certificates::default());
        certificates.replace(read_certificates(&[files], &tt_net::stream::TlsRules::default()).unwrap());
        let plan = StreamPlan {
            limits,
            certificates,
            balancers: Arc::default(),
            sources: Arc::new(Sources::new(64)),
            handshakes: pool,
        };
        let listener = StreamListener::listeners("127.0.0.1:0".parse().unwrap(), 1).unwrap().remove(0);
        let addr = listener.local_addr();
        let poller = Poller::new(8).unwrap();
        let mut streams = Streams::new(plan, WorkerId(0), poller.waker());
        streams.add_listener((ListenerId::default(), listener, Takes::Both), &poller).unwrap();
        let shared = Arc::new(Shared::new(Quotas::default(), 8, 1));
        let secrets = Secrets::new([1; 32], [2; 32]);
        let server = Server::new(Config::new("realm"), Capacity::for_allocations(8), shared, WorkerId(0), secrets);
        let inbox = Inbox::new(8, 65_552);
        Self { _folder: folder, thread: threads.remove(0), streams, server, poller, inbox, addr }
    }

    fn connect(&self, first: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.addr).unwrap();
        client.write_all(first).unwrap();
        client
    }

    /// Serves the connections as a worker does, until `is_so`.
    fn serve(&mut self, is_so: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < PATIENCE, "{:?}", self.streams.counts);
            for key in self.poller.wait(Some(Duration::from_millis(10))).unwrap().to_vec() {
                let key = stream_of(key).unwrap();
                self.streams.take_turn(Nanos(1), key, &mut self.server, &self.poller, &mut self.inbox);
            }
            self.streams.flush_and_close(Nanos(1), &mut self.server);
        }
    }
}

/// The worker hands the connection over with every byte in the kernel, and serves others while no thread shakes hands.
#[test]
fn a_worker_reads_no_byte_of_a_tls_handshake() {
    let mut stage = Stage::new();
    let greeted = stage.connect(GREETING);
    stage.serve(|stage| stage.streams.counts.handshakes_in_progress == 1);
    let begin = stage.thread.requests.take().begins.pop().unwrap();
    let mut socket = TcpStream::from(begin.connection.as_fd().try_clone_to_owned().unwrap());
    assert_eq!(socket.peer_addr().unwrap(), greeted.local_addr().unwrap());
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = [0; GREETING.len()];
    socket.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, GREETING);

    let _plain = stage.connect(BINDING);
    stage.serve(|stage| stage.inbox.len() == 1);
    assert_eq!(stage.inbox.datagram(0).bytes, BINDING);
    let counts = stage.streams.counts;
    assert_eq!((counts.open, counts.half_open, counts.handshakes_in_progress), (2, 1, 1));
}

/// However late the thread is, it keeps no descriptor and no memory of a connection that has gone.
#[test]
fn connections_that_come_and_go_leave_no_request() {
    let mut stage = Stage::new();
    for number in 0..200 {
        let _greeted = stage.connect(GREETING);
        stage.serve(|stage| stage.streams.counts.handshakes_in_progress == 1);
        assert_eq!(stage.thread.requests.len()[0], 1, "{number}");
        stage.streams.close_all();
        stage.serve(|stage| stage.streams.counts.open == 0);
    }
    let [begins, order] = stage.thread.requests.len();
    assert!(begins == 0 && order <= 64, "{begins} {order}");
    let taken = stage.thread.requests.take();
    assert!(taken.begins.is_empty() && taken.cancels.is_empty(), "{taken:?}");
}

/// A worker that closes a connection, here after a panic, cancels its handshake; an outcome that crosses is dropped.
#[test]
fn a_closed_connection_ends_its_handshake() {
    let mut stage = Stage::new();
    let _greeted = stage.connect(GREETING);
    stage.serve(|stage| stage.streams.counts.handshakes_in_progress == 1);
    stage.thread.take_requests();
    assert_eq!((stage.thread.tickets.len(), stage.thread.deadlines.len()), (1, 1));
    stage.streams.close_all();
    stage.serve(|stage| stage.streams.counts.open == 0);
    let slot = *stage.thread.tickets.values().next().unwrap();
    stage.thread.finish(slot, Err(End::HandshakeDeadline));
    stage.thread.take_requests();
    assert!(stage.thread.tickets.is_empty() && stage.thread.deadlines.is_empty());
    assert!(stage.streams.take_handshakes(Nanos(1), &stage.poller).is_empty());
    stage.streams.flush_and_close(Nanos(1), &mut stage.server);
    let counts = stage.streams.counts;
    assert_eq!((counts.ended[End::Panic as usize], counts.ended[End::HandshakeDeadline as usize]), (1, 0));
    assert_eq!((counts.open, counts.handshakes_in_progress), (0, 0));
}
