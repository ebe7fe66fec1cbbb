//! Sockets that a service manager has bound: each takes the place of one that the server would bind.

use std::fmt::{self, Display};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use anyhow::{Context as _, ensure};
use tt_net::stream::StreamListener;
use tt_net::{PassedSocket, UdpSocket};
use turn_config::TurnConfig;

/// What a socket is for. A unit may say it as the name of its sockets (`FileDescriptorName=`); other names mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Udp,
    Tcp,
    Tls,
    Http,
}

impl Purpose {
    const ALL: [Self; 4] = [Self::Udp, Self::Tcp, Self::Tls, Self::Http];

    const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Http => "http",
        }
    }
}

/// Sockets that another process has bound. The configuration says what each is for, by its address.
#[derive(Debug, Default)]
pub struct PassedSockets {
    sockets: Vec<Passed>,
    /// The address of the control plane.
    http: Option<SocketAddr>,
}

#[derive(Debug)]
struct Passed {
    socket: PassedSocket,
    name: String,
    /// Its place among those that were passed, from 1.
    number: usize,
}

impl PassedSockets {
    /// Takes descriptors with their names in the unit.
    ///
    /// # Errors
    /// A descriptor that is no bound UDP socket and no listening TCP socket, or that takes IPv4 at an IPv6 address.
    pub fn new(descriptors: impl IntoIterator<Item = (String, OwnedFd)>) -> anyhow::Result<Self> {
        let passed = (1..).zip(descriptors).map(|(number, (name, descriptor))| {
            let socket = PassedSocket::new(descriptor);
            let socket = socket.with_context(|| format!("turn: passed socket {number} ({name:?}) cannot be used"))?;
            Ok(Passed { socket, name, number })
        });
        Ok(Self { sockets: passed.collect::<anyhow::Result<_>>()?, http: None })
    }

    /// Takes the socket for the control plane at `addr`.
    pub fn take_http(&mut self, addr: SocketAddr) -> Option<TcpListener> {
        self.http = Some(addr);
        self.take_listeners(addr, Purpose::Http).pop().map(TcpListener::from)
    }

    /// Takes the UDP sockets at `addr`.
    pub(crate) fn take_udp(&mut self, addr: SocketAddr) -> Vec<UdpSocket> {
        let udp = |socket| if let PassedSocket::Udp(udp) = socket { Some(udp) } else { None };
        self.take(addr, Purpose::Udp).into_iter().filter_map(udp).collect()
    }

    /// Takes the listening sockets at `addr` for plain TCP, and TLS with a certificate.
    pub(crate) fn take_tcp(&mut self, addr: SocketAddr) -> Vec<StreamListener> {
        self.take_listeners(addr, Purpose::Tcp)
    }

    /// Takes the listening sockets at `addr` for TLS only.
    pub(crate) fn take_tls(&mut self, addr: SocketAddr) -> Vec<StreamListener> {
        self.take_listeners(addr, Purpose::Tls)
    }

    fn take_listeners(&mut self, addr: SocketAddr, purpose: Purpose) -> Vec<StreamListener> {
        let tcp = |socket| if let PassedSocket::Tcp(tcp) = socket { Some(tcp) } else { None };
        self.take(addr, purpose).into_iter().filter_map(tcp).collect()
    }

    fn take(&mut self, addr: SocketAddr, purpose: Purpose) -> Vec<PassedSocket> {
        let is_taken = |passed: &mut Passed| passed.socket.local_addr() == addr && passed.suits(purpose);
        self.sockets.extract_if(.., is_taken).map(|passed| passed.socket).collect()
    }

    /// Checks that every socket was taken: an unread one would lose what clients send.
    ///
    /// # Errors
    /// Sockets that the configuration does not name.
    pub(crate) fn check_taken(&self, config: &TurnConfig) -> anyhow::Result<()> {
        let left: Vec<String> = self.sockets.iter().map(ToString::to_string).collect();
        ensure!(
            left.is_empty(),
            "turn: {} not in the configuration, which listens on {}",
            if left.len() == 1 { format!("{} is", left[0]) } else { format!("{} are", left.join(", ")) },
            self.configured(config).join(", ")
        );
        Ok(())
    }

    /// Returns the purpose and the address of everything that is listened on.
    fn configured(&self, config: &TurnConfig) -> Vec<String> {
        let named = |purpose: Purpose| move |addr: &SocketAddr| format!("{} {addr}", purpose.name());
        let on_udp_ports = if config.tcp_on_udp_ports { &config.listen[..] } else { &[] };
        let udp = config.listen.iter().map(named(Purpose::Udp));
        let tcp = on_udp_ports.iter().chain(&config.listen_tcp).map(named(Purpose::Tcp));
        let tls = config.listen_tls.iter().map(named(Purpose::Tls));
        udp.chain(tcp).chain(tls).chain(self.http.iter().map(named(Purpose::Http))).collect()
    }
}

impl Passed {
    /// Whether its type and its name, if that names a purpose, are those of `purpose`.
    fn suits(&self, purpose: Purpose) -> bool {
        let is_datagram = matches!(self.socket, PassedSocket::Udp(_));
        let named = Purpose::ALL.into_iter().find(|purpose| purpose.name() == self.name);
        is_datagram == (purpose == Purpose::Udp) && named.is_none_or(|named| named == purpose)
    }
}

impl Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if matches!(self.socket, PassedSocket::Udp(_)) { "udp" } else { "tcp" };
        write!(f, "passed socket {}, {transport} {}", self.number, self.socket.local_addr())?;
        if self.name.is_empty() { Ok(()) } else { write!(f, ", named {:?}", self.name) }
    }
}
