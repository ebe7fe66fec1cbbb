//! Scripts: a list of actions that the seed generates and the minimiser shortens.

use std::fmt;

use tt_model::Nanos;

use super::topology::{CALLS_S, Size, Topology};
use crate::draw::{Draw, mix};

/// One deed at one time. `draw` decides its particulars, so that they stay when other actions are struck out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub(super) at: Nanos,
    pub(super) deed: Deed,
    pub(super) draw: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Ask {
        client: usize,
        request: Request,
    },
    Say {
        client: usize,
    },
    /// The client's NAT gives it another port, or a stream is reconnected.
    Rebind {
        client: usize,
    },
    PeerSays {
        peer: usize,
    },
    Spoof {
        victim: usize,
    },
    Replay,
    /// Somebody on the path appends attributes to the client's next requests.
    Append {
        victim: usize,
    },
    /// A request with another user's right credentials on the victim's five-tuple.
    Hijack {
        victim: usize,
    },
    Flood,
    Weather {
        of: Path,
        ill: Ill,
        for_s: u64,
    },
    Crash,
    ClockJump,
    Squeeze {
        for_s: u64,
    },
    SendErrors {
        for_s: u64,
    },
    Steer,
    /// The server makes no new allocation from now on, until it is restarted.
    Drain,
    /// The operator denies one of the peers from now on.
    DenyPeer {
        peer: usize,
    },
    /// The host listens on a peer's address and port from now on, or no longer.
    ToggleListener {
        peer: usize,
    },
    RotateNonceKey,
    /// An ICMP error about something that a relay may have sent.
    Icmp,
    /// The client's application gets it another credential, which ends sooner or later.
    Renew {
        client: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Binding,
    Allocate,
    Refresh,
    Close,
    Permit,
    Bind,
}

/// Which link the weather is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Clients,
    Client(usize),
    Peers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ill {
    Loss,
    Duplicate,
    Reorder,
    Corrupt,
    Truncate,
    Delay,
    Partition,
    Mtu,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} s  {:?}  ({:016x})", self.at.0 as f64 / 1e9, self.deed, self.draw)
    }
}

/// A seed's topology and what is done in it.
#[derive(Clone, Debug)]
pub struct Script {
    /// The seed.
    pub seed: u64,
    pub(super) topology: Topology,
    /// By time.
    pub actions: Vec<Action>,
}

impl Script {
    /// Returns the script of `seed`.
    #[must_use]
    pub fn of(seed: u64, size: Size) -> Self {
        let mut draw = Draw::new(mix(seed, 0x7475_726E));
        let topology = Topology::drawn(&mut draw, size);
        let mut actions = Vec::new();
        match size {
            Size::Drawn => {
                clients(&mut draw, &topology, &mut actions);
                peers_and_attackers(&mut draw, &topology, &mut actions);
                faults(&mut draw, &topology, &mut actions);
            }
            Size::Calm { .. } => calm(&mut draw, &topology, &mut actions),
        }
        actions.sort_by_key(|action| action.at);
        Self { seed, topology, actions }
    }

    /// The same with other actions, in the order of time.
    #[must_use]
    pub fn with(&self, actions: Vec<Action>) -> Self {
        Self { actions, ..self.clone() }
    }

    /// A line about the world.
    #[must_use]
    pub fn summary(&self) -> String {
        let of = &self.topology;
        format!(
            "{} workers, {} clients, {} users, {} peers, {} s, {} actions",
            of.workers,
            of.clients.len(),
            of.users,
            of.peers.len(),
            of.duration_s,
            self.actions.len()
        )
    }
}

const NANOS_PER_MS: u64 = 1_000_000;

fn at(draw: &mut Draw, from_ms: u64, to_ms: u64) -> Nanos {
    Nanos(draw.between(from_ms, to_ms.max(from_ms)) * NANOS_PER_MS + draw.below(NANOS_PER_MS))
}

fn clients(draw: &mut Draw, topology: &Topology, actions: &mut Vec<Action>) {
    let end_ms = topology.duration_s * 1_000;
    let deeds_max = if topology.clients.len() > 400 { 6 } else { 30 };
    for client in 0..topology.clients.len() {
        let start_ms = draw.below(end_ms / 3 + 1);
        let mut put = |draw: &mut Draw, at: Nanos, deed| actions.push(Action { at, deed, draw: draw.next() });
        if draw.chance(7, 8) {
            let when = at(draw, start_ms, start_ms);
            put(draw, when, Deed::Ask { client, request: Request::Allocate });
            put(draw, when, Deed::Ask { client, request: Request::Permit });
        }
        for _ in 0..draw.between(3, deeds_max) {
            let when = at(draw, start_ms, end_ms);
            let renews = u64::from(topology.rules.is_limited(topology.clients[client].user)) * 4;
            let deed = match draw.weighted(&[45, 12, 12, 10, 8, 3, 3, 2, renews]) {
                0 => Deed::Say { client },
                1 => Deed::Ask { client, request: Request::Permit },
                2 => Deed::Ask { client, request: Request::Bind },
                3 => Deed::Ask { client, request: Request::Refresh },
                4 => Deed::Ask { client, request: Request::Allocate },
                5 => Deed::Ask { client, request: Request::Binding },
                6 => Deed::Ask { client, request: Request::Close },
                8 => Deed::Renew { client },
                _ if topology.features.rebind => Deed::Rebind { client },
                _ => Deed::Say { client },
            };
            put(draw, when, deed);
        }
        if topology.features.shares && draw.chance(1, 2) {
            // More than an allocation has for itself.
            for number in 0..14 {
                let request = if number < 3 { Request::Permit } else { Request::Bind };
                let when = at(draw, start_ms, start_ms + 20_000);
                put(draw, when, Deed::Ask { client, request });
            }
        }
        if topology.duration_s == CALLS_S && topology.clients.len() <= 12 && draw.chance(1, 2) {
            keep(draw, client, (start_ms, end_ms), actions);
        }
    }
}

/// A call that goes on for all of the time.
fn keep(draw: &mut Draw, client: usize, (start_ms, end_ms): (u64, u64), actions: &mut Vec<Action>) {
    for (request, each_s) in [(Some(Request::Refresh), 450), (Some(Request::Permit), 250), (None, 150)] {
        let deed = request.map_or(Deed::Say { client }, |request| Deed::Ask { client, request });
        let mut next_ms = start_ms;
        while next_ms < end_ms {
            actions.push(Action { at: at(draw, next_ms, next_ms), deed, draw: draw.next() });
            next_ms += draw.between(each_s * 900, each_s * 1_100);
        }
    }
}

fn peers_and_attackers(draw: &mut Draw, topology: &Topology, actions: &mut Vec<Action>) {
    let end_ms = topology.duration_s * 1_000;
    let features = &topology.features;
    let clients = topology.clients.len();
    let some = (clients as u64).min(40) * 2;
    let mut put = |draw: &mut Draw, times: u64, deed: &dyn Fn(&mut Draw) -> Deed| {
        for _ in 0..draw.between(1, times.max(1)) {
            let when = at(draw, 0, end_ms);
            let deed = deed(draw);
            actions.push(Action { at: when, deed, draw: draw.next() });
        }
    };
    put(draw, some * 2, &|draw| Deed::PeerSays { peer: draw.below(topology.peers.len() as u64) as usize });
    let victim = |draw: &mut Draw| draw.below(clients as u64) as usize;
    if features.spoofer {
        put(draw, some, &|draw| Deed::Spoof { victim: victim(draw) });
    }
    if features.replayer {
        put(draw, some, &|_| Deed::Replay);
    }
    if features.appender {
        put(draw, some, &|draw| Deed::Append { victim: victim(draw) });
    }
    if features.thief {
        put(draw, some, &|draw| Deed::Hijack { victim: victim(draw) });
    }
    if features.flooder {
        put(draw, 4, &|_| Deed::Flood);
    }
}

fn faults(draw: &mut Draw, topology: &Topology, actions: &mut Vec<Action>) {
    let end_ms = topology.duration_s * 1_000;
    let features = &topology.features;
    let clients = topology.clients.len() as u64;
    let mut put = |draw: &mut Draw, times: u64, deed: Deed| {
        for _ in 0..draw.between(1, times) {
            let when = at(draw, 0, end_ms);
            actions.push(Action { at: when, deed, draw: draw.next() });
        }
    };
    let ills = [
        (features.loss, Ill::Loss),
        (features.duplicate, Ill::Duplicate),
        (features.reorder, Ill::Reorder),
        (features.corrupt, Ill::Corrupt),
        (features.truncate, Ill::Truncate),
        (features.delay, Ill::Delay),
        (features.partition, Ill::Partition),
        (features.mtu, Ill::Mtu),
    ];
    for (_, ill) in ills.into_iter().filter(|(is_on, _)| *is_on) {
        for _ in 0..draw.between(1, 3) {
            let of = match draw.below(4) {
                0 => Path::Peers,
                1 => Path::Client(draw.below(clients) as usize),
                _ => Path::Clients,
            };
            let for_s = draw.between(1, topology.duration_s);
            put(draw, 1, Deed::Weather { of, ill, for_s });
        }
    }
    let for_s = draw.between(1, topology.duration_s);
    let peer = draw.below(topology.peers.len() as u64) as usize;
    for (is_on, times, deed) in [
        (features.crash, 2, Deed::Crash),
        (features.clock, 4, Deed::ClockJump),
        (features.squeeze, 2, Deed::Squeeze { for_s }),
        (features.send_errors, 2, Deed::SendErrors { for_s }),
        (features.steer, 4, Deed::Steer),
        (features.drain, 1, Deed::Drain),
        (features.reload, 3, Deed::DenyPeer { peer }),
        (features.reload, 6, Deed::ToggleListener { peer }),
        (features.rotate, 3, Deed::RotateNonceKey),
        (features.icmp, clients * 2, Deed::Icmp),
    ] {
        if is_on {
            put(draw, times, deed);
        }
    }
}

/// Clients that allocate, refresh and speak once a second.
fn calm(draw: &mut Draw, topology: &Topology, actions: &mut Vec<Action>) {
    for client in 0..topology.clients.len() {
        let phase = draw.below(1_000);
        let mut put = |draw: &mut Draw, ms: u64, deed| {
            actions.push(Action { at: Nanos((ms + phase) * NANOS_PER_MS), deed, draw: draw.next() });
        };
        put(draw, 0, Deed::Ask { client, request: Request::Allocate });
        for second in 1..topology.duration_s {
            match second % 240 {
                1 => put(draw, second * 1_000, Deed::Ask { client, request: Request::Permit }),
                2 => put(draw, second * 1_000, Deed::Ask { client, request: Request::Bind }),
                3 => put(draw, second * 1_000, Deed::Ask { client, request: Request::Refresh }),
                _ => put(draw, second * 1_000, Deed::Say { client }),
            }
        }
    }
}
