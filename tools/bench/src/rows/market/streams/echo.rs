//! The least that a WebSocket server can do: each message back, with the time at which it was read.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;
use tt_os::clock::unix_now;
use tt_os::stdout;

use super::frame::{self, Incoming};

/// The answer to every handshake: this server's one client sends the key of RFC 6455 section 1.3.
const ACCEPTED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
/// Digits of the time before each message.
pub(super) const STAMP: usize = 20;

/// Prints a port of loopback, and serves one connection there until it ends.
///
/// # Errors
/// There is no port, or the connection is lost.
pub fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port")?;
    stdout::print(&format!("{}\n", listener.local_addr()?))?;
    let (mut stream, _) = listener.accept().context("no connection")?;
    stream.set_nodelay(true)?;
    let mut incoming = Incoming::new();
    while incoming.take_head(b"\r\n\r\n").is_none() {
        anyhow::ensure!(incoming.read_from(&mut stream)? > 0, "no handshake");
    }
    stream.write_all(ACCEPTED)?;
    let mut answer = Vec::new();
    while incoming.read_from(&mut stream)? > 0 {
        while let Some(message) = incoming.next_text()? {
            let read = unix_now().0;
            answer.clear();
            write!(answer, "{read:0STAMP$}")?;
            answer.extend_from_slice(message);
            stream.write_all(&frame::text(&answer, false))?;
        }
    }
    Ok(())
}
