//! Shares of what all users have together (docs/turn-operators.md): a user who holds little gets more while there is
//! any, and one who holds much leaves a part of the rest to others.

use tt_model::Nanos;
use tt_turn::shared::Pools;

use super::{Alive, Claim, Codes, Flow, Leg, Model};

/// Permissions and channels that every allocation has for itself.
const OWN_PERMISSIONS: u32 = 16;
const OWN_CHANNELS: u32 = 8;
/// What every user may hold of a pool that is not small.
const OWN_MIN: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Allocations,
    Ports,
    Reservations,
    Permissions,
    Channels,
}

impl Pool {
    const ALL: [Self; 5] = [Self::Allocations, Self::Ports, Self::Reservations, Self::Permissions, Self::Channels];

    pub(super) fn of(self, pools: &Pools) -> u32 {
        match self {
            Self::Allocations => pools.allocations,
            Self::Ports => pools.ports,
            Self::Reservations => pools.reservations,
            Self::Permissions => pools.permissions,
            Self::Channels => pools.channels,
        }
    }
}

/// Units that are surely held, and at most: what has expired is given back at some time within a second.
#[derive(Clone, Copy, Debug, Default)]
struct Units {
    least: u32,
    most: u32,
}

impl Units {
    fn add(&mut self, least: u32, most: u32) {
        self.least += least;
        self.most += most;
    }
}

impl Claim {
    /// What an allocation holds of a pool.
    fn units(&self, pool: Pool, now: Nanos) -> (u32, u32) {
        let live = |leg: &&Leg| now < leg.expires;
        let beyond = |own: u32, least: usize, most: usize| {
            ((least as u32).saturating_sub(own), (most as u32).saturating_sub(own))
        };
        match pool {
            Pool::Allocations => (u32::from(now < self.expires()), 1),
            // A port rests at the user's expense.
            Pool::Ports => (self.legs().count() as u32, self.legs().count() as u32),
            Pool::Reservations => (0, 0),
            Pool::Permissions => {
                let ends = |leg: &Leg| leg.permissions.values().filter(|end| now < **end).count();
                let least = self.legs().filter(live).map(ends).sum();
                beyond(OWN_PERMISSIONS, least, self.legs().map(|leg| leg.permissions.len()).sum())
            }
            Pool::Channels => {
                let ends = |leg: &Leg| leg.channels.values().filter(|(_, end)| now < *end).count();
                let least = self.legs().filter(live).map(ends).sum();
                beyond(OWN_CHANNELS, least, self.legs().map(|leg| leg.channels.len()).sum())
            }
        }
    }
}

/// How many of the `more` after the first `has` are not an allocation's own.
pub(super) fn beyond_permissions(has: u32, more: u32) -> u32 {
    (has + more).saturating_sub(OWN_PERMISSIONS.max(has))
}

pub(super) fn beyond_channels(has: u32, more: u32) -> u32 {
    (has + more).saturating_sub(OWN_CHANNELS.max(has))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shortage {
    Empty,
    Share,
}

impl Model {
    fn size(&self, pool: Pool) -> u32 {
        let size = pool.of(&self.rules.shares.pools);
        if pool == Pool::Allocations { size.min(self.rules.allocations_total) } else { size }
    }

    /// What users hold of a pool: one, or all of them.
    fn held(&self, pool: Pool, now: Nanos, user: Option<usize>) -> Units {
        let is_of = |of: usize| user.is_none_or(|user| user == of);
        let mut held = Units::default();
        for claim in self.claims.values().filter(|claim| is_of(claim.user)) {
            let (least, most) = claim.units(pool, now);
            held.add(least, most);
        }
        if matches!(pool, Pool::Allocations | Pool::Ports | Pool::Reservations) {
            for reservation in self.reservations.values().filter(|reservation| is_of(reservation.user)) {
                held.add(u32::from(reservation.alive(now) == Alive::Yes || pool == Pool::Ports), 1);
            }
        }
        if pool == Pool::Ports {
            let resting = self.resting.values().filter(|of| is_of(**of)).count() as u32;
            held.add(resting, resting);
        }
        held
    }

    /// With what a user's wish for more of a pool must, and may, be rejected: with nothing, where it gets them at once.
    fn shortage(&self, now: Nanos, user: usize, pool: Pool, units: u32) -> (Codes, Codes) {
        let size = self.size(pool);
        if units == 0 || size == u32::MAX {
            return (Codes::default(), Codes::default());
        }
        let (held, used) = (self.held(pool, now, Some(user)), self.held(pool, now, None));
        let code = |shortage: Shortage, used: u32| match (pool, shortage) {
            (_, Shortage::Share) => 486,
            (Pool::Allocations, Shortage::Empty) if used + units > self.rules.allocations_total => 486,
            (_, Shortage::Empty) => 508,
        };
        let codes = |held: u32, used: u32| {
            let found = self.short(size, held, used, units);
            found.map_or(Codes::default(), |found| Codes::one(code(found, used)))
        };
        let (best, worst) = (codes(held.least, used.least), codes(held.most, used.most));
        if best.list().is_empty() { (best, worst) } else { (best.and_all(&worst), Codes::default()) }
    }

    /// The same for an Allocate's allocations, ports and reserved ports, and for how fast it comes.
    pub(super) fn shortages(&self, now: Nanos, user: usize, units: [u32; 3]) -> (Codes, Codes) {
        let too_fast = units[0] > 0 && self.may_allocate_too_fast(now);
        let mut codes = (Codes::default(), if too_fast { Codes::one(486) } else { Codes::default() });
        for (pool, units) in [Pool::Allocations, Pool::Ports, Pool::Reservations].into_iter().zip(units) {
            let (must, may) = self.shortage(now, user, pool, units);
            codes = (codes.0.and_all(&must), codes.1.and_all(&may));
        }
        codes
    }

    /// Whether a user's wish for so many more, at least and at most, one after the other, must and may be rejected.
    pub(super) fn runs_short(&self, now: Nanos, user: usize, pool: Pool, (least, most): (u32, u32)) -> (bool, bool) {
        let size = self.size(pool);
        if size == u32::MAX {
            return (false, false);
        }
        let (held, used) = (self.held(pool, now, Some(user)), self.held(pool, now, None));
        let last = |held: u32, used: u32, units: u32| {
            units > 0 && self.short(size, held + units - 1, used + units - 1, 1).is_some()
        };
        (last(held.least, used.least, least), last(held.most, used.most, most))
    }

    fn short(&self, size: u32, held: u32, used: u32, units: u32) -> Option<Shortage> {
        let Some(free) = size.checked_sub(used).filter(|free| units <= *free) else { return Some(Shortage::Empty) };
        let percent = u64::from(self.rules.shares.percent);
        let (before_last, others) = (u64::from(held + units - 1), 100 - percent);
        let left_by_one = u64::from(size) * others / 100;
        let is_little = before_last < OWN_MIN && before_last < left_by_one;
        let reserve = (left_by_one / 4).max(OWN_MIN.min(left_by_one));
        let leaves_reserve = u64::from(free) >= reserve + u64::from(units);
        let is_share = others == 0 || (before_last * others < percent * u64::from(free) && leaves_reserve);
        (!is_little && !is_share).then_some(Shortage::Share)
    }

    /// The pool of which the server has given out more, or less, than what is held.
    pub(in crate::turn_world) fn lost_units(&self, now: Nanos, used: &Pools) -> Option<String> {
        if self.rules.shares.pools == Pools::UNLIMITED {
            return None;
        }
        let wrong = |pool: &Pool| {
            let (held, used) = (self.held(*pool, now, None), pool.of(used));
            (!(held.least..=held.most).contains(&used)).then(|| format!("{used} units of {pool:?}, not {held:?}"))
        };
        Pool::ALL.iter().find_map(wrong)
    }

    /// Whether a user holds nothing but the allocation of a flow: its account is new with it.
    pub(super) fn has_nothing_else(&self, user: usize, flow: &Flow) -> bool {
        let other = self.claims.iter().any(|(of, claim)| of != flow && claim.user == user);
        let reserved = self.reservations.values().filter(|held| held.user == user).count();
        let own = usize::from(self.claims.get(flow).is_some_and(|claim| claim.token.is_some()));
        let resting = self.resting.values().chain(self.retiring.values()).any(|of| *of == user);
        !other && reserved <= own && !resting
    }
}
