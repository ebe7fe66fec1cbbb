//! What checks share: probes of one transport, allocations, and a peer that the server relays to.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use tt_turn::codec::attribute;
use zeroize::Zeroizing;

use super::check::{Check, Finding, Unmet};
use super::control::Control;
use super::peer::{Peer, PeerKind};
use super::probe::Probe;
use super::reply::Reply;
use super::{ConformOptions, unreachable};
use crate::client::{Attribute, Login};
use crate::link::Link;
use crate::target::{Target, Transport};

/// Time after which a relayed datagram is lost.
pub(super) const LOST_AFTER: Duration = Duration::from_millis(500);
const NOTHING_RELAYED: &str = "the server relays neither to its own relayed addresses nor to this machine";
/// Sockets whose port was used before that are opened in vain.
const PORTS_ASIDE_MAX: usize = 16;
/// Datagrams that are sent to find out whether a peer is reached.
const TRIALS: u8 = 3;

/// A server over one transport.
pub(super) struct Judge<'a> {
    target: &'a Target,
    pub(super) transport: Transport,
    pub(super) port: u16,
    options: &'a ConformOptions,
    control: Rc<Control>,
    /// The peer that was reached, or why there was none.
    peer: RefCell<Option<Result<PeerKind, Unmet>>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        (target, transport, port): (&'a Target, Transport, u16),
        options: &'a ConformOptions,
        control: Rc<Control>,
    ) -> Self {
        Self { target, transport, port, options, control, peer: RefCell::new(None) }
    }

    fn open(&self) -> Result<Link, Unmet> {
        self.control.heed_stop()?;
        let open = || {
            let link = Link::open(self.transport, &self.target.host, self.port, &self.options.roots);
            link.map_err(|error| unreachable(self.port, &error))
        };
        let mut link = open()?;
        // The links that are put aside keep their ports until there is another.
        let mut aside = Vec::new();
        while link.is_lossy()
            && aside.len() < PORTS_ASIDE_MAX
            && link.local_addr().is_ok_and(|local| !self.control.is_new_port(local.port()))
        {
            aside.push(std::mem::replace(&mut link, open()?));
        }
        Ok(link)
    }

    /// Connects, and asks for a Binding.
    pub(super) fn reach(&self) -> Finding {
        self.stranger()?.binding().map(drop)
    }

    /// Judges a check. After a hostile one the server must still answer.
    pub(super) fn judge(&self, check: &Check) -> Finding {
        self.control.heed_stop()?;
        (check.judge)(self)?;
        if check.is_hostile {
            let alive = self.reach();
            return alive.map_err(|unmet| match unmet {
                Unmet::Failed { received, .. } => Unmet::failed("the server still answers a Binding", received),
                Unmet::Absent(reason) => Unmet::failed("the server still answers a Binding", reason),
                Unmet::NotJudged(reason) => Unmet::NotJudged(reason),
            });
        }
        Ok(())
    }

    /// A client without a credential.
    pub(super) fn stranger(&self) -> Result<Probe, Unmet> {
        let none = Login { name: String::new(), password: Zeroizing::default() };
        Ok(Probe::new(self.open()?, self.options.login.clone().unwrap_or(none), Rc::clone(&self.control)))
    }

    /// A client that has a nonce.
    pub(super) fn client(&self) -> Result<Probe, Unmet> {
        let mut probe = self.stranger()?;
        let reply = probe.challenge()?;
        reply.expect_code(401)?;
        Ok(probe)
    }

    /// A client of another user on the same connection as `probe`: its name and its password.
    pub(super) fn other_login(&self) -> Result<Login, Unmet> {
        self.options.other_login.clone().ok_or_else(|| Unmet::not_judged("no credential of another user"))
    }

    /// A client with an allocation, and its relayed address.
    pub(super) fn allocated(&self) -> Result<(Probe, SocketAddr), Unmet> {
        let (probe, reply) = self.allocated_with(&[])?;
        let relayed = reply.address(attribute::XOR_RELAYED_ADDRESS);
        Ok((probe, relayed.ok_or_else(|| Unmet::failed("XOR-RELAYED-ADDRESS", "none"))?))
    }

    /// A client with an allocation, and the response.
    pub(super) fn allocated_with(&self, more: &[Attribute<'_>]) -> Result<(Probe, Reply), Unmet> {
        let mut probe = self.client()?;
        let reply = probe.allocate(more)?;
        match reply.code() {
            0 if reply.is_success() => Ok((probe, reply)),
            401 => Err(Unmet::not_judged("the credential is wrong or has expired: error 401")),
            486 | 508 => Err(Unmet::not_judged(format!("the server grants no allocation: {}", reply.text()))),
            _ => Err(Unmet::failed("a success response to Allocate", reply.text())),
        }
    }

    /// An allocation without permissions, its relayed address, and a peer that may send to it.
    pub(super) fn relaying(&self) -> Result<(Probe, SocketAddr, Peer), Unmet> {
        let kind = self.peer_kind().map_err(|_| Unmet::not_judged(NOTHING_RELAYED))?;
        let (probe, relayed) = self.allocated()?;
        let peer = self.peer_of(kind, &probe, relayed)?;
        Ok((probe, relayed, peer))
    }

    /// Returns the kind of peer that data reach. Fails if they should have reached one.
    pub(super) fn peer_kind(&self) -> Result<PeerKind, Unmet> {
        self.control.heed_stop()?;
        let known = self.peer.borrow().clone();
        known.unwrap_or_else(|| {
            let kind = self.find_peer();
            *self.peer.borrow_mut() = Some(kind.clone());
            kind
        })
    }

    fn find_peer(&self) -> Result<PeerKind, Unmet> {
        let mut reason = Unmet::not_judged(NOTHING_RELAYED);
        for kind in [PeerKind::Relayed, PeerKind::Local] {
            let (mut probe, relayed) = self.allocated()?;
            let Ok(mut peer) = self.peer_of(kind, &probe, relayed) else { continue };
            if !probe.permit(peer.addr())?.is_success() {
                continue;
            }
            for trial in 0..TRIALS {
                probe.send_to_peer(peer.addr(), &[trial])?;
                if peer.receive(LOST_AFTER)?.is_some() {
                    return Ok(kind);
                }
            }
            // A peer behind an address translation, or one that is a relayed address, may be out of reach.
            if kind == PeerKind::Local && probe.is_untranslated()? {
                reason = Unmet::failed("the data reach a permitted peer", "nothing in three attempts");
            }
        }
        Err(reason)
    }

    fn peer_of(&self, kind: PeerKind, probe: &Probe, relayed: SocketAddr) -> Result<Peer, Unmet> {
        match kind {
            PeerKind::Relayed => {
                let (mut other, other_relayed) = self.allocated()?;
                let reply = other.permit(relayed)?;
                match reply.is_success() {
                    true => Ok(Peer::Relayed(Box::new(other), other_relayed)),
                    false => Err(Unmet::not_judged(format!("{} for a relayed address as peer", reply.text()))),
                }
            }
            PeerKind::Local => local_peer(probe),
        }
    }

    /// A socket that the server would see as it is, if there is no address translation in between.
    pub(super) fn local_peer(&self, probe: &Probe) -> Result<Peer, Unmet> {
        local_peer(probe)
    }
}

fn local_peer(probe: &Probe) -> Result<Peer, Unmet> {
    let bound = probe.link.local_addr().and_then(|local| UdpSocket::bind((local.ip(), 0)));
    let bound = bound.and_then(|socket| socket.local_addr().map(|addr| (socket, addr)));
    let (socket, addr) = bound.map_err(|error| Unmet::not_judged(format!("no socket on this machine: {error}")))?;
    Ok(Peer::Local(socket, addr))
}
