//! Sockets that take connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::Connection;

/// Connections that may wait to be taken; the kernel may allow fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 1_024;
/// Bytes that the kernel takes ahead of what it has sent. The rest waits in the connection's own queue, which is bounded.
const UNSENT_MAX: u32 = 64 << 10;
/// Time after which the kernel closes a connection with unacknowledged bytes.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);

/// A non-blocking listening TCP socket that knows the address it is bound to.
#[derive(Debug)]
pub struct StreamListener {
    socket: Socket,
    local: SocketAddr,
}

impl StreamListener {
    /// `count` sockets on `addr` between which the kernel spreads the connections (`SO_REUSEPORT`). Port 0 is one free
    /// port for all of them.
    ///
    /// # Errors
    /// `EADDRINUSE`, even if the other socket would share the port, and other errors of the kernel.
    pub fn listeners(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        // The first one is bound alone, so that a second server on this port is an error and not a rival.
        let first = open(addr)?;
        first.bind(&addr.into())?;
        first.set_reuse_port(true)?;
        let local = first.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        first.listen(BACKLOG)?;
        let further = Self::further_listeners(local, count.saturating_sub(1))?;
        Ok(std::iter::once(Self { socket: first, local }).chain(further).take(count).collect())
    }

    /// Opens `count` more sockets, on a port that this user listens on with [`StreamListener::listeners`]. On the same
    /// address they share its connections.
    ///
    /// # Errors
    /// `EADDRINUSE` if a holder of the port does not share it.
    pub fn further_listeners(addr: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let join = |_| {
            let socket = open(addr)?;
            socket.set_reuse_port(true)?;
            socket.bind(&addr.into())?;
            socket.listen(BACKLOG)?;
            Ok(Self { socket, local: addr })
        };
        (0..count).map(join).collect()
    }

    /// Takes a socket that another process has bound to `local` and listens on.
    pub(crate) fn passed(socket: Socket, local: SocketAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, local })
    }

    /// Returns a second descriptor of this socket: each connection goes to the one that takes it first.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, local: self.local })
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts a pending connection; `None` if there is none.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOBUFS`: the connection stays pending. A connection that was reset while pending is
    /// skipped.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        loop {
            let (socket, client) = match self.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_of_the_client(&error) => continue,
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            // These options are optional.
            let _ = socket.set_tcp_nodelay(true);
            let _ = socket.set_tcp_notsent_lowat(UNSENT_MAX);
            let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
            let addresses = (client.as_socket(), socket.local_addr()?.as_socket());
            if let (Some(client), Some(server)) = addresses {
                return Ok(Some(Connection::new(socket.into(), client, server)));
            }
        }
    }
}

fn open(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of the run before may linger on the port; another listener is still an error.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Whether accept(2) returned the error of a connection that failed while pending.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}

impl From<StreamListener> for TcpListener {
    fn from(listener: StreamListener) -> Self {
        listener.socket.into()
    }
}

impl AsFd for StreamListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
