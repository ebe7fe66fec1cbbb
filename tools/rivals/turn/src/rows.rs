//! The rows: what is asked of every server, and what truetick aims at.

use crate::drive::Pace;
use crate::rivals::RELAY_PORTS;

/// Setting: datagrams that are out at once in a closed loop.
pub(crate) const WINDOW: usize = 64;
/// Setting: datagrams that one GSO sender hands over in one piece.
const TRAIN: usize = 16;
/// Setting: datagrams that leave each second in an open loop.
const OPEN_PER_SECOND: u64 = 20_000;
/// Setting: allocation cycles that are under way at once.
pub(crate) const CYCLES_AT_ONCE: usize = 16;
/// Setting: allocation cycles of a run. A server may let a port rest for a while, so a run is bounded by its cycles.
pub(crate) const CYCLES_OF_A_RUN: u64 = 2_500;
/// Setting: allocations of the memory row.
pub(crate) const MANY: usize = 10_000;
/// Setting: allocations of the rows of all memory: what 20,000 descriptors allow with a socket each, and a great many.
const CROWDS: [usize; 2] = [7_000, 100_000];
/// Setting: allocations of the rows of senders without a permission.
const SPRAYED: [usize; 2] = [50, 6_000];

/// A way through a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Binding,
    ToPeer,
    FromPeer,
    BetweenClients,
}

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// Datagrams, each of which must arrive at the other end.
    Traffic { way: Way, payload_len: usize, flows: usize, train: usize, pace: Pace },
    /// 401, Allocate, Refresh with lifetime 0.
    Cycle,
    /// Datagrams without a permission to the relayed addresses of so many allocations.
    Spray { relays: usize },
    /// Resident memory of many allocations, each with one channel.
    Memory,
    /// Memory of the process and of the kernel for it, with so many.
    Crowd { allocations: usize },
}

impl Work {
    /// How a server is started for it.
    pub(crate) fn room(self) -> Room {
        match self {
            Self::Crowd { allocations } => Room::Accounted((allocations as u32).next_multiple_of(RELAY_PORTS)),
            Self::Traffic { .. } | Self::Cycle | Self::Spray { .. } | Self::Memory => Room::Usual,
        }
    }

    /// Whether it is measured only if it is asked for.
    pub(crate) fn is_on_demand(self) -> bool {
        matches!(self, Self::Crowd { .. })
    }

    /// Whether each run needs a fresh server: ports that rest after the rows before would be missing.
    pub(crate) fn needs_a_fresh_server(self) -> bool {
        matches!(self, Self::Spray { .. } | Self::Memory | Self::Crowd { .. })
    }
}

/// How a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// For as many allocations as one address has relay ports.
    Usual,
    /// For so many, in a control group that accounts for memory.
    Accounted(u32),
}

impl Room {
    pub(crate) const fn allocations(self) -> u32 {
        match self {
            Self::Usual => RELAY_PORTS,
            Self::Accounted(allocations) => allocations,
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) work: Work,
    /// CPU time (memory, in its row) as a part of stock coturn's, at most.
    pub(crate) aim: Option<f64>,
    pub(crate) is_quick: bool,
}

/// All rows in the order of the report.
pub(crate) fn all() -> Vec<Row> {
    let closed = Pace::Closed { window: WINDOW };
    let open = Pace::Open { per_second: OPEN_PER_SECOND };
    let mut rows = Vec::new();
    let mut add = |name: String, work, aim, is_quick| rows.push(Row { name, work, aim, is_quick });
    for flows in [1, 100] {
        let work = Work::Traffic { way: Way::Binding, payload_len: 0, flows, train: 1, pace: closed };
        add(format!("binding_{flows}"), work, Some(0.75), flows == 1);
    }
    for (way, word) in [(Way::ToPeer, "to_peer"), (Way::FromPeer, "from_peer"), (Way::BetweenClients, "clients")] {
        for payload_len in [160, 1200] {
            for flows in [1, 10, 100] {
                let aim = match way {
                    Way::ToPeer => Some(0.92),
                    Way::FromPeer => (flows == 100).then_some(0.70),
                    Way::BetweenClients => Some(0.45),
                    Way::Binding => None,
                };
                let work = Work::Traffic { way, payload_len, flows, train: 1, pace: closed };
                add(format!("{word}_{payload_len}_{flows}"), work, aim, payload_len == 160 && flows != 10);
            }
        }
    }
    for payload_len in [160, 1200] {
        let work = Work::Traffic { way: Way::ToPeer, payload_len, flows: 1, train: TRAIN, pace: closed };
        add(format!("train_{payload_len}"), work, Some(0.35), payload_len == 160);
    }
    for (way, word) in [(Way::Binding, "binding"), (Way::ToPeer, "to_peer"), (Way::FromPeer, "from_peer")] {
        let payload_len = if way == Way::Binding { 0 } else { 160 };
        let work = Work::Traffic { way, payload_len, flows: 10, train: 1, pace: open };
        add(format!("open_{word}"), work, None, way == Way::ToPeer);
    }
    for relays in SPRAYED {
        add(format!("spray_{relays}"), Work::Spray { relays }, None, true);
    }
    add("cycle".into(), Work::Cycle, Some(0.35), true);
    add("memory".into(), Work::Memory, Some(0.15), true);
    for allocations in CROWDS {
        add(format!("crowd_{allocations}"), Work::Crowd { allocations }, None, false);
    }
    rows
}
