//! Scripts: the limits, the traffic and the faults of a seed.

use std::fmt;

use tt_model::Nanos;

use super::setup::Setup;
use crate::draw::{Draw, mix};

/// One deed at one time; `draw` decides its particulars, so that they stay when other actions are struck out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub(super) at: Nanos,
    pub(super) deed: Deed,
    pub(super) draw: u64,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A strategy sends an intent.
    Intent,
    /// The feed has a price.
    Mark,
    /// Rates of currencies, balances, equities, days.
    Money,
    /// The venue executes an order.
    Trade,
    /// The venue ends, busts, corrects, enlarges or overfills an order.
    Whim,
    /// Somebody enters an order at the venue by hand.
    Hand,
    /// The next report suffers this.
    Report(Fate),
    /// An operator sets a mode.
    Mode,
    /// An operator kills while the sender writes, or while the gate evaluates.
    KillWithin,
    /// An operator declares an account true.
    Adopt,
    /// An operator compares an account with the venue.
    Reconcile,
    /// An operator replaces limits.
    Reload,
    /// An operator cancels every open order of a scope.
    CancelScope,
    /// An instrument has another state.
    State,
    /// The process dies, with the loss of power or without.
    Crash {
        power: bool,
    },
    /// The producer dies, with what is in its ring.
    ProducerCrash,
    /// The sender sleeps, the strategies do not read verdicts, or the gate's thread does not run.
    Stall(Sleeper),
    /// The gate's clock goes back.
    StepBack,
    /// The machine sleeps: the gate's clock stops.
    Suspend,
    /// The disk has no room for another segment, or has room again.
    DiskFull,
    DiskRoom,
    /// No sync succeeds until the next start.
    SyncFails,
}

/// Faults of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is lost, and comes by another way much later.
    Lose,
    Double,
    Delay,
    /// It comes again with another content.
    Contradict,
    /// Before it comes one that is impossible.
    Malform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleeper {
    Sender,
    Strategies,
    Gate,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} s  {:?}  ({:016x})", self.at.0 as f64 / 1e9, self.deed, self.draw)
    }
}

/// A seed's limits and what happens under them.
#[derive(Clone, Debug)]
pub struct Script {
    /// The seed.
    pub seed: u64,
    pub(super) setup: Setup,
    /// By time.
    pub actions: Vec<Action>,
}

const FAULTS: usize = 19;

impl Script {
    /// Returns the script of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw::new(mix(seed, 0x6761_7465));
        let setup = Setup::draw(&mut draw);
        let traffic = draw.between(30, 160);
        let end = Nanos(traffic * draw.between(300_000, 3_000_000));
        let mut actions = Vec::new();
        let mut add = |deed, draw: &mut Draw| {
            let at = Nanos(draw.between(1_000_000, end.0));
            actions.push(Action { at, deed, draw: draw.next() });
        };
        for _ in 0..traffic {
            let deed = [Deed::Intent, Deed::Mark, Deed::Trade, Deed::Money][draw.weighted(&[12, 4, 6, 1])];
            add(deed, &mut draw);
        }
        // About half of the kinds, each seed its own.
        let kinds: Vec<usize> = (0..FAULTS).filter(|_| draw.chance(1, 2)).collect();
        if !kinds.is_empty() {
            for _ in 0..draw.between(2, 24) {
                let deed = fault(draw.pick(&kinds), &mut draw);
                add(deed, &mut draw);
            }
        }
        actions.sort_by_key(|action| action.at);
        Self { seed, setup, actions }
    }

    /// The same with other actions.
    #[must_use]
    pub fn with(&self, actions: Vec<Action>) -> Self {
        Self { actions, ..self.clone() }
    }

    /// How much happens, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let Setup { accounts, instruments, durability, .. } = &self.setup;
        let last = self.actions.last().map_or(0, |action| action.at.0 / 1_000_000);
        format!("{accounts} x {instruments}, {durability:?}; {} actions in {last} ms", self.actions.len())
    }
}

fn fault(kind: usize, draw: &mut Draw) -> Deed {
    match kind {
        0 => Deed::Report(Fate::Lose),
        1 => Deed::Report(Fate::Double),
        2 => Deed::Report(Fate::Delay),
        3 => Deed::Report(Fate::Contradict),
        4 => Deed::Report(Fate::Malform),
        5 => Deed::Whim,
        6 => Deed::Mode,
        7 => Deed::KillWithin,
        8 => Deed::Adopt,
        9 => Deed::Reconcile,
        10 => Deed::Reload,
        11 => Deed::State,
        12 => Deed::Crash { power: draw.chance(1, 2) },
        13 => Deed::ProducerCrash,
        14 => Deed::Stall(draw.pick(&[Sleeper::Sender, Sleeper::Strategies, Sleeper::Gate])),
        15 => draw.pick(&[Deed::StepBack, Deed::Suspend]),
        16 => Deed::CancelScope,
        17 => Deed::Hand,
        _ => draw.pick(&[Deed::DiskFull, Deed::DiskFull, Deed::DiskRoom, Deed::SyncFails]),
    }
}
