//! A reader of `/ws/orderbook`: it checks that each message continues the one before it.

use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::frame::Incoming;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshot,
    Delta,
    Status,
    Gap,
}

/// A message and when the server had read its venue's frame, nanoseconds of the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) ts_recv: u64,
}

/// Messages that were received, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) messages: u64,
    pub(super) deltas: u64,
    pub(super) gaps: u64,
    pub(super) lost: u64,
    pub(super) bytes: u64,
}

/// An open WebSocket.
#[derive(Debug)]
pub(super) struct Reader {
    stream: TcpStream,
    incoming: Incoming,
    /// Number and update of the last message; none before the first snapshot, and after a gap mark.
    last: Option<(u64, u64)>,
    pub(super) received: Received,
}

impl Reader {
    /// Opens `/ws/orderbook` of every book at `address`, and does not wait in reads afterwards.
    ///
    /// # Errors
    /// No connection, or no WebSocket there.
    pub(super) fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).context("no connection")?;
        stream.set_nodelay(true)?;
        let request = format!(
            "GET /ws/orderbook HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut incoming = Incoming::new();
        let head = loop {
            if let Some(head) = incoming.take_head(b"\r\n\r\n") {
                break head;
            }
            ensure!(incoming.read_from(&mut stream)? > 0, "closed during the handshake");
        };
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 101 "), "no WebSocket: {}", head.lines().next().unwrap_or_default());
        // Of the key above: RFC 6455 section 1.3.
        ensure!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "a wrong Sec-WebSocket-Accept");
        stream.set_nonblocking(true)?;
        Ok(Self { stream, incoming, last: None, received: Received::default() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Reads what is there; returns whether there was anything.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn read(&mut self) -> anyhow::Result<bool> {
        match self.incoming.read_from(&mut self.stream) {
            Ok(0) => bail!("the server has closed the connection"),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Another handle of the connection, which writes.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn writer(&self) -> anyhow::Result<TcpStream> {
        Ok(self.stream.try_clone()?)
    }

    /// Sleeps until there is something to read; returns whether there is after `limit`.
    ///
    /// # Errors
    /// The error of the system call.
    pub(super) fn sleep(&self, limit: Duration) -> anyhow::Result<bool> {
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        Ok(poll(&mut [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)], limit)? > 0)
    }

    /// The payload of the next message that was read.
    ///
    /// # Errors
    /// The server ends the stream.
    pub(super) fn next_payload(&mut self) -> anyhow::Result<Option<&[u8]>> {
        Ok(self.incoming.next_text()?.map(|payload| &*payload))
    }

    /// The next message that was read, after a check that it continues the one before it.
    ///
    /// # Errors
    /// It does not, and no gap mark says so.
    pub(super) fn next_message(&mut self) -> anyhow::Result<Option<Message>> {
        Ok(self.next_checked()?.map(|(message, _)| message))
    }

    /// As [`next_message`](Self::next_message), with its payload.
    pub(super) fn next_with_payload(&mut self) -> anyhow::Result<Option<(Message, Vec<u8>)>> {
        Ok(self.next_checked()?.map(|(message, text)| (message, text.as_bytes().to_vec())))
    }

    fn next_checked(&mut self) -> anyhow::Result<Option<(Message, &str)>> {
        let Some(payload) = self.incoming.next_text()? else { return Ok(None) };
        let text = std::str::from_utf8(payload)?;
        let received = &mut self.received;
        received.messages += 1;
        received.bytes += text.len() as u64;
        let number = |name: &str| number(text, name).with_context(|| format!("no {name} in {text}"));
        let kind = match text.strip_prefix("{\"type\":\"").and_then(|text| text.split_once('"')) {
            Some(("snapshot", _)) => Kind::Snapshot,
            Some(("delta", _)) => Kind::Delta,
            Some(("status", _)) => Kind::Status,
            Some(("gap", _)) => {
                (received.gaps, received.lost) = (received.gaps + 1, received.lost + number("lost")?);
                self.last = None;
                return Ok(Some((Message { kind: Kind::Gap, ts_recv: 0 }, text)));
            }
            _ => bail!("an unknown message: {text}"),
        };
        let (seq, update_id) = (number("seq")?, number("update_id")?);
        match (kind, self.last) {
            (Kind::Delta, Some((last, last_id))) => {
                let previous = number("previous_id")?;
                ensure!(
                    (seq, previous) == (last + 1, last_id),
                    "a silent loss after message {last} of update {last_id}: {text}"
                );
            }
            (Kind::Status, Some((last, _))) => ensure!(seq == last + 1, "a silent loss after message {last}: {text}"),
            (Kind::Delta | Kind::Status, None) => bail!("no snapshot before {text}"),
            (Kind::Snapshot | Kind::Gap, _) => {}
        }
        received.deltas += u64::from(kind == Kind::Delta);
        self.last = Some((seq, update_id));
        let ts_recv = number("ts_recv")?;
        Ok(Some((Message { kind, ts_recv }, text)))
    }

    /// The next message, which is waited for; `None` after `limit`.
    ///
    /// # Errors
    /// As [`next_message`](Self::next_message).
    pub(super) fn wait_for(&mut self, limit: Duration) -> anyhow::Result<Option<Message>> {
        let begin = Instant::now();
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(Some(message));
            }
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            if self.sleep(left)? {
                self.read()?;
            }
        }
    }
}

/// The whole number of a member that is a number; members of that name inside of others come later.
fn number(text: &str, name: &str) -> Option<u64> {
    let at = text.find(&format!("\"{name}\":"))? + name.len() + 3;
    let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
    text[at..at + digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    use super::super::frame;
    use super::*;

    /// What a reader makes of `messages`, and the error that ended it.
    fn read(messages: &[&str]) -> (Received, Option<String>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        messages.iter().for_each(|text| server.write_all(&frame::text(text.as_bytes(), false)).unwrap());
        drop(server);
        let mut reader = Reader { stream, incoming: Incoming::new(), last: None, received: Received::default() };
        loop {
            match reader.next_message() {
                Ok(Some(_)) => {}
                Ok(None) if reader.read().is_err() => return (reader.received, None),
                Ok(None) => {}
                Err(error) => return (reader.received, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn a_silent_loss_is_an_error_and_a_gap_mark_is_counted() {
        let snapshot = r#"{"type":"snapshot","seq":4,"update_id":70,"ts_recv":9}"#;
        let delta = |seq, previous| {
            format!(
                r#"{{"type":"delta","seq":{seq},"previous_id":{previous},"update_id":{},"ts_recv":9}}"#,
                previous + 1
            )
        };
        let (next, later) = (delta(5, 70), delta(7, 72));
        let (received, error) = read(&[snapshot, &next]);
        assert_eq!((received.messages, received.deltas, error), (2, 1, None));
        let (_, error) = read(&[snapshot, &next, &later]);
        assert!(error.unwrap().contains("a silent loss after message 5"));
        let gap = r#"{"type":"gap","lost":1}"#;
        let whole = r#"{"type":"snapshot","seq":6,"update_id":72,"ts_recv":9}"#;
        let (received, error) = read(&[snapshot, &next, gap, whole, &later]);
        assert_eq!((received.gaps, received.lost, received.deltas, error), (1, 1, 2, None));
        let (_, error) = read(&[snapshot, &next, gap, &later]);
        assert!(error.unwrap().contains("no snapshot"));
    }
}
