//! A peer of an allocation: another allocation of the same server, or a socket of this machine.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::check::{Finding, Unmet};
use super::probe::{Delivery, Probe};

const LEN_MAX: usize = 65_535;

/// A peer.
pub(super) enum Peer {
    /// The relayed address of another allocation.
    Relayed(Box<Probe>, SocketAddr),
    Local(UdpSocket, SocketAddr),
}

/// The kind of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerKind {
    Relayed,
    Local,
}

impl Peer {
    pub(super) fn addr(&self) -> SocketAddr {
        match self {
            Self::Relayed(_, addr) | Self::Local(_, addr) => *addr,
        }
    }

    pub(super) fn send(&mut self, to: SocketAddr, payload: &[u8]) -> Finding {
        match self {
            Self::Relayed(probe, _) => probe.send_to_peer(to, payload),
            Self::Local(socket, _) => socket.send_to(payload, to).map(drop).map_err(|error| trouble(&error)),
        }
    }

    /// Waits for a datagram and returns its source and payload; `None` if there is none.
    pub(super) fn receive(&mut self, within: Duration) -> Result<Option<(SocketAddr, Vec<u8>)>, Unmet> {
        match self {
            Self::Relayed(probe, _) => Ok(match probe.data(within)? {
                Some(Delivery::Indication { peer: Some(from), payload: Some(payload) }) => Some((from, payload)),
                // The peer has bound no channel.
                Some(Delivery::Indication { .. } | Delivery::Channel { .. }) | None => None,
            }),
            Self::Local(socket, _) => {
                let mut bytes = vec![0; LEN_MAX];
                socket.set_read_timeout(Some(within)).map_err(|error| trouble(&error))?;
                match socket.recv_from(&mut bytes) {
                    Ok((length, from)) => {
                        bytes.truncate(length);
                        Ok(Some((from, bytes)))
                    }
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                        Ok(None)
                    }
                    Err(error) => Err(trouble(&error)),
                }
            }
        }
    }
}

fn trouble(error: &io::Error) -> Unmet {
    Unmet::not_judged(format!("a socket of this machine: {error}"))
}
