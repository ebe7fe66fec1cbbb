use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{Connection, HandshakeProgress, Progress, Resumption, Scratch, Security, StreamEnd, StreamRules, Taken};
use crate::Poller;
use crate::stream::{StreamListener, TlsCertificate, TlsIdentity, TlsNames, TlsRules};

const PATIENCE: Duration = Duration::from_secs(20);
const BINDING: &[u8] = b"\x00\x01\x00\x00\x21\x12\xA4\x42AAAABBBBCCCC";

/// Takes connections of one listener and waits for what happens to them.
struct Host {
    listener: StreamListener,
    poller: Poller,
    scratch: Scratch,
    identity: Option<TlsIdentity>,
}

impl Host {
    fn new(identity: Option<TlsIdentity>) -> Self {
        let listener = StreamListener::listeners("127.0.0.1:0".parse().unwrap(), 1).unwrap().remove(0);
        let poller = Poller::new(8).unwrap();
        poller.add_stream(&listener, 0).unwrap();
        Self { listener, poller, scratch: Scratch::default(), identity }
    }

    fn addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    fn accept(&mut self) -> Connection {
        loop {
            if let Some(connection) = self.listener.accept().unwrap() {
                self.poller.add_stream(&connection, 1).unwrap();
                return connection;
            }
            self.poller.wait(Some(PATIENCE)).unwrap();
        }
    }

    /// Reads until a message has come or the connection is over.
    fn hear(&mut self, connection: &mut Connection) -> (Vec<Vec<u8>>, Option<StreamEnd>) {
        let rules = StreamRules { tls: self.identity.is_some(), plain: true, message_len_max: 1_000 };
        let mut messages = Vec::new();
        loop {
            let got = connection.receive(rules, &mut self.scratch, 64, |message| messages.push(message.to_vec()));
            match got {
                Err(end) => return (messages, Some(end)),
                Ok(_) if !messages.is_empty() => return (messages, None),
                Ok(Progress::More) => {}
                Ok(Progress::Drained) => {
                    self.poller.wait(Some(PATIENCE)).unwrap();
                }
            }
        }
    }
}

impl Host {
    /// Shakes hands with a client of TLS.
    fn shake_hands(&mut self, connection: &mut Connection) -> Result<Resumption, StreamEnd> {
        let identity = self.identity.clone().unwrap();
        let rules = StreamRules { tls: true, plain: true, message_len_max: 1_000 };
        while connection.security() == Security::Undecided {
            connection.receive(rules, &mut self.scratch, 64, |_| panic!("a message before the handshake"))?;
            self.poller.wait(Some(Duration::from_millis(1))).unwrap();
        }
        loop {
            match connection.shake_hands(Some(&identity), &mut self.scratch)? {
                HandshakeProgress::Done(resumption) => return Ok(resumption),
                HandshakeProgress::More => {}
                HandshakeProgress::Waiting => {
                    self.poller.wait(Some(PATIENCE)).unwrap();
                }
            }
        }
    }
}

fn certificate() -> (TlsIdentity, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = TlsIdentity::new(
        vec![TlsCertificate::from_pem(cert.as_bytes(), key.as_bytes()).unwrap()],
        &TlsRules::default(),
    );
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (identity.unwrap(), builder.with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn plain_messages_come_in_and_go_out() {
    let mut host = Host::new(None);
    let mut client = TcpStream::connect(host.addr()).unwrap();
    let mut connection = host.accept();
    assert_eq!((connection.client(), connection.server()), (client.local_addr().unwrap(), host.addr()));
    assert_eq!((connection.security(), connection.has_begun()), (Security::Undecided, false));
    client.write_all(&BINDING.repeat(3)).unwrap();
    assert_eq!(host.hear(&mut connection), (vec![BINDING.to_vec(); 3], None));
    assert_eq!((connection.security(), connection.has_begun()), (Security::Plain, true));
    assert_eq!(connection.send(&[b"one ", b"message"], 64), Taken::Queued);
    connection.flush().unwrap();
    let mut answer = [0; 11];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"one message");
    client.write_all(BINDING).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (mut heard, mut end) = host.hear(&mut connection);
    while end.is_none() {
        let (more, ended) = host.hear(&mut connection);
        heard.extend(more);
        end = ended;
    }
    assert_eq!((heard, end), (vec![BINDING.to_vec()], Some(StreamEnd::Client)), "what came before the end counts");
}

#[test]
fn junk_ends_a_connection_at_its_first_byte() {
    for (junk, end) in [
        (&b"G"[..], StreamEnd::NotStun),
        (b"\x40\x01\x00\x00", StreamEnd::NotStun),
        (b"\x16\x03\x01", StreamEnd::NoCertificate),
        (b"\x00\x01\xFF\x00\x21\x12\xA4\x42", StreamEnd::TooLong),
    ] {
        let mut host = Host::new(None);
        let mut client = TcpStream::connect(host.addr()).unwrap();
        let mut connection = host.accept();
        client.write_all(junk).unwrap();
        assert_eq!(host.hear(&mut connection), (vec![], Some(end)), "{junk:?}");
    }
}

#[test]
fn case_a72_a_client_that_does_not_read_costs_its_queue_and_no_more() {
    let mut host = Host::new(None);
    let mut client = TcpStream::connect(host.addr()).unwrap();
    let mut connection = host.accept();
    let message = [7; 1_000];
    let (mut taken, mut refused) = (0_u64, 0_u64);
    while refused < 1_000 {
        match connection.send(&[&message], 64 << 10) {
            Taken::Queued => taken += 1,
            Taken::Full => refused += 1,
        }
        connection.flush().unwrap();
        assert!(connection.waiting_len() <= 64 << 10);
    }
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Every message that was taken arrives, whole, once the client reads.
    let mut rest = taken * 1_000;
    let mut bytes = vec![0; 1 << 16];
    while rest > 0 {
        let len = client.read(&mut bytes).unwrap();
        assert!(len > 0 && bytes[..len].iter().all(|byte| *byte == 7));
        rest -= len as u64;
        connection.flush().unwrap();
    }
    assert_eq!(connection.waiting_len(), 0);
}

#[test]
fn detects_tls_by_its_first_byte() {
    let (identity, config) = certificate();
    let mut host = Host::new(Some(identity));
    let socket = TcpStream::connect(host.addr()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let client = std::thread::spawn(move || {
        let mut client = StreamOwned::new(tls, socket);
        client.write_all(&BINDING.repeat(2)).unwrap();
        let mut answer = vec![0; 40_000];
        client.read_exact(&mut answer).unwrap();
        client.conn.send_close_notify();
        client.flush().unwrap();
        answer
    });
    let mut connection = host.accept();
    assert_eq!(host.shake_hands(&mut connection), Ok(Resumption::Full));
    let (messages, end) = host.hear(&mut connection);
    assert_eq!((messages.concat(), end), (BINDING.repeat(2), None));
    assert_eq!(connection.security(), Security::Tls);
    // The names of `openssl ciphers`; rustls prefers this one.
    let names = TlsNames { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384" };
    assert_eq!(connection.tls_names(), Some(names));
    assert_eq!(connection.send(&[&[5; 40_000]], 64), Taken::Queued, "a message alone always fits");
    connection.flush().unwrap();
    assert_eq!(host.hear(&mut connection), (vec![], Some(StreamEnd::Client)));
    assert_eq!(client.join().unwrap(), [5; 40_000]);
    let mut plain = TcpStream::connect(host.addr()).unwrap();
    let mut connection = host.accept();
    plain.write_all(BINDING).unwrap();
    assert_eq!(host.hear(&mut connection).0, [BINDING]);
    assert_eq!(connection.security(), Security::Plain);
}

/// A client's second session costs no signature; messages with the end of its handshake are not lost.
#[test]
fn a_client_that_returns_resumes_its_session_and_speaks_at_once() {
    let (identity, config) = certificate();
    let (_, other) = certificate();
    let mut host = Host::new(Some(identity));
    let config = Arc::new(config);
    for (kind, connections) in [(Resumption::Full, 1), (Resumption::Resumed, 2)] {
        for _ in 0..connections {
            let socket = TcpStream::connect(host.addr()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let tls = ClientConnection::new(Arc::clone(&config), ServerName::try_from("localhost").unwrap()).unwrap();
            let client = std::thread::spawn(move || {
                let mut client = StreamOwned::new(tls, socket);
                client.write_all(&BINDING.repeat(1_000)).unwrap();
                client.read_exact(&mut [0; 3]).unwrap();
            });
            let mut connection = host.accept();
            assert_eq!(host.shake_hands(&mut connection), Ok(kind));
            let mut messages = Vec::new();
            while messages.len() < 1_000 {
                let (more, end) = host.hear(&mut connection);
                assert_eq!(end, None);
                messages.extend(more);
            }
            assert_eq!(messages, vec![BINDING.to_vec(); 1_000]);
            connection.send(&[b"yes"], 64);
            connection.flush().unwrap();
            client.join().unwrap();
        }
    }
    // A client that does not trust the certificate ends it.
    let socket = TcpStream::connect(host.addr()).unwrap();
    let tls = ClientConnection::new(Arc::new(other), ServerName::try_from("localhost").unwrap()).unwrap();
    let client = std::thread::spawn(move || StreamOwned::new(tls, socket).write_all(BINDING).unwrap_err());
    let mut connection = host.accept();
    assert_eq!(host.shake_hands(&mut connection), Err(StreamEnd::Tls));
    client.join().unwrap();
}
