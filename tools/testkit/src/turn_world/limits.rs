//! What the operator limits: traffic on the wire, and how much one user gets of what all share.

use tt_turn::shared::{Budget, Pools, Quotas};

use crate::draw::Draw;

/// Bytes and packets a second, `u64::MAX` for any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) user_bytes: u64,
    pub(super) user_packets: u64,
    pub(super) source_bytes: u64,
    pub(super) source_packets: u64,
    pub(super) allocation_bytes: u64,
    pub(super) total_bytes: u64,
}

impl Rates {
    pub(super) const NONE: Self = Self {
        user_bytes: u64::MAX,
        user_packets: u64::MAX,
        source_bytes: u64::MAX,
        source_packets: u64::MAX,
        allocation_bytes: u64::MAX,
        total_bytes: u64::MAX,
    };

    pub(super) fn drawn(draw: &mut Draw) -> Self {
        let mut rate = |rates: &[u64]| if draw.chance(1, 2) { draw.pick(rates) } else { u64::MAX };
        Self {
            user_bytes: rate(&[100, 300, 1_000, 10_000]),
            user_packets: rate(&[1, 3, 10]),
            source_bytes: rate(&[100, 300, 1_000, 10_000]),
            source_packets: rate(&[1, 3, 10]),
            allocation_bytes: rate(&[60, 300, 1_000]),
            total_bytes: rate(&[200, 1_000, 20_000]),
        }
    }
}

/// Shares of what all users have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Of what others leave.
    pub(super) percent: u8,
    pub(super) pools: Pools,
    /// Allocations of one user: a second, and at once.
    pub(super) allocation_rate: Option<(u32, u32)>,
}

impl Shares {
    pub(super) const NONE: Self = Self { percent: 100, pools: Pools::UNLIMITED, allocation_rate: None };

    /// For so many clients, and so many relays of all workers.
    pub(super) fn drawn(draw: &mut Draw, clients: u32, relays: u32) -> Self {
        let size = |draw: &mut Draw, low: u32, high: u32| draw.between(u64::from(low), u64::from(high.max(low))) as u32;
        Self {
            percent: draw.pick(&[50, 75, 75, 99]),
            pools: Pools {
                allocations: size(draw, 2, clients * 2),
                ports: size(draw, relays / 4 + 2, relays),
                reservations: draw.pick(&[1, 3, 40]),
                permissions: draw.pick(&[1, 8, 40, 400]),
                channels: draw.pick(&[1, 8, 40, 400]),
            },
            allocation_rate: draw.chance(1, 3).then(|| draw.pick(&[(1, 2), (2, 10), (50, 200)])),
        }
    }
}

/// The engine's quotas.
pub(super) fn quotas(rates: &Rates, shares: &Shares) -> Quotas {
    let budget = |(per_second, burst)| Budget { per_second, burst };
    Quotas {
        user_share_percent: shares.percent,
        user_allocation_rate: shares.allocation_rate.map_or(Budget::UNLIMITED, budget),
        bytes_per_second_per_user: rates.user_bytes,
        packets_per_second_per_user: rates.user_packets,
        bytes_per_second_per_source: rates.source_bytes,
        packets_per_second_per_source: rates.source_packets,
        bytes_per_second_per_allocation: rates.allocation_bytes,
        bytes_per_second_total: rates.total_bytes,
        ..Quotas::default()
    }
}
