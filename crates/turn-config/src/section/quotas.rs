//! `[turn.quotas]`

use std::num::NonZero;

use serde::{Deserialize, Serialize};
use tt_turn::config::Capacity;
use tt_turn::shared::{Budget, Quotas};

/// The burst of error replies to one source, in seconds of their rate.
const SOURCE_BURST_S: u32 = 4;

/// The burst of allocations of one user, in seconds of their rate.
const ALLOCATIONS_BURST_S: u32 = 4;

/// Quotas of each user, each allocation and each source. An absent key has its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasSection {
    /// Live allocations of one user, reserved ports included [default: unlimited].
    pub user_allocations: Option<NonZero<u32>>,
    /// The part of ports, allocations, reservations, permissions and channels that one user may hold while no other user
    /// holds any, percent. Of what others leave every user gets the same part; 100 is no limit.
    pub user_share_percent: Option<u8>,
    /// Allocations per second of one user; 0 is no limit.
    pub user_allocations_per_second: Option<u32>,
    /// Burst of allocations of one user [default: four times the number per second].
    pub user_allocations_burst: Option<u32>,
    /// Relayed bytes per second of one user, IP and UDP headers included, both directions together [default: unlimited].
    pub user_bytes_per_second: Option<NonZero<u64>>,
    /// Relayed packets per second of one user, both directions together [default: unlimited].
    pub user_packets_per_second: Option<NonZero<u64>>,
    /// The same bytes per second of one source, the address of clients [default: unlimited].
    pub source_bytes_per_second: Option<NonZero<u64>>,
    /// Relayed packets per second of one source, both directions together [default: unlimited].
    pub source_packets_per_second: Option<NonZero<u64>>,
    /// The same bytes per second of one allocation [default: unlimited].
    pub allocation_bytes_per_second: Option<NonZero<u64>>,
    /// The same bytes per second of the process [default: unlimited].
    pub bytes_per_second: Option<NonZero<u64>>,
    /// Live permissions of one allocation.
    pub permissions_per_allocation: Option<NonZero<u32>>,
    /// Live channels of one allocation.
    pub channels_per_allocation: Option<NonZero<u32>>,
    /// Bytes per second by which unauthenticated error replies over UDP may exceed three times their requests, to all
    /// sources. Within it sources have no limit.
    pub error_excess_bytes_per_second: Option<u32>,
    /// The same bytes per second to one source once the total is used up; four times as many at once.
    pub error_excess_bytes_per_source: Option<u32>,
    /// Binding responses per second to one source [default: unlimited].
    pub binding_replies_per_second: Option<u32>,
    /// Burst of Binding responses to one source [default: the number per second].
    pub binding_replies_burst: Option<u32>,
    /// Length of the prefix that makes an IPv6 source, bits.
    pub ipv6_prefix_bits: Option<u8>,
}

/// Limits of one allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationCaps {
    /// Live permissions.
    pub permissions: u32,
    /// Live channels.
    pub channels: u32,
}

impl Default for AllocationCaps {
    fn default() -> Self {
        let Capacity { permissions_per_allocation, channels_per_allocation, .. } = Capacity::for_allocations(1);
        Self { permissions: permissions_per_allocation, channels: channels_per_allocation }
    }
}

/// Returns the rate of a key; without one it is unlimited.
fn rate(key: Option<NonZero<u64>>) -> u64 {
    key.map_or(u64::MAX, NonZero::get)
}

/// Returns the key of a rate.
fn limit(rate: u64) -> Option<NonZero<u64>> {
    NonZero::new(rate).filter(|limit| limit.get() != u64::MAX)
}

impl QuotasSection {
    /// Returns the quotas of users and sources, with defaults for absent keys.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        let default = Quotas::default();
        let total = self.error_excess_bytes_per_second;
        let per_source = self.error_excess_bytes_per_source;
        let per_second = self.binding_replies_per_second;
        Quotas {
            allocations_per_user: self.user_allocations.map_or(default.allocations_per_user, NonZero::get),
            user_share_percent: self.user_share_percent.unwrap_or(default.user_share_percent),
            user_allocation_rate: self.allocation_rate(default.user_allocation_rate),
            bytes_per_second_per_user: rate(self.user_bytes_per_second),
            packets_per_second_per_user: rate(self.user_packets_per_second),
            bytes_per_second_per_source: rate(self.source_bytes_per_second),
            packets_per_second_per_source: rate(self.source_packets_per_second),
            bytes_per_second_per_allocation: rate(self.allocation_bytes_per_second),
            bytes_per_second_total: rate(self.bytes_per_second),
            error_excess: total.map_or(default.error_excess, |per_second| Budget { per_second, burst: per_second }),
            error_excess_per_source: per_source.map_or(default.error_excess_per_source, |per_second| Budget {
                per_second,
                burst: per_second.saturating_mul(SOURCE_BURST_S),
            }),
            ipv6_prefix_bits: self.ipv6_prefix_bits.unwrap_or(default.ipv6_prefix_bits),
            binding_replies: per_second.map_or(default.binding_replies, |per_second| Budget {
                per_second,
                burst: self.binding_replies_burst.unwrap_or(per_second),
            }),
            ..default
        }
    }

    fn allocation_rate(&self, default: Budget) -> Budget {
        let per_second = self.user_allocations_per_second.unwrap_or(default.per_second);
        let burst = self.user_allocations_burst.unwrap_or(per_second.saturating_mul(ALLOCATIONS_BURST_S));
        if per_second == 0 { Budget::UNLIMITED } else { Budget { per_second, burst } }
    }

    /// Returns the limits of one allocation, with defaults for absent keys.
    #[must_use]
    pub fn caps(&self) -> AllocationCaps {
        let default = AllocationCaps::default();
        AllocationCaps {
            permissions: self.permissions_per_allocation.map_or(default.permissions, NonZero::get),
            channels: self.channels_per_allocation.map_or(default.channels, NonZero::get),
        }
    }

    /// Returns the section for `quotas` and `caps`. Unlimited quotas are absent.
    #[must_use]
    pub fn of(quotas: &Quotas, caps: AllocationCaps) -> Self {
        let rate = Some(quotas.user_allocation_rate).filter(|budget| *budget != Budget::UNLIMITED);
        let binding = Some(quotas.binding_replies).filter(|budget| *budget != Budget::UNLIMITED);
        Self {
            user_allocations: NonZero::new(quotas.allocations_per_user).filter(|most| most.get() != u32::MAX),
            user_share_percent: Some(quotas.user_share_percent),
            user_allocations_per_second: Some(rate.map_or(0, |budget| budget.per_second)),
            user_allocations_burst: rate.map(|budget| budget.burst),
            user_bytes_per_second: limit(quotas.bytes_per_second_per_user),
            user_packets_per_second: limit(quotas.packets_per_second_per_user),
            source_bytes_per_second: limit(quotas.bytes_per_second_per_source),
            source_packets_per_second: limit(quotas.packets_per_second_per_source),
            allocation_bytes_per_second: limit(quotas.bytes_per_second_per_allocation),
            bytes_per_second: limit(quotas.bytes_per_second_total),
            permissions_per_allocation: NonZero::new(caps.permissions),
            channels_per_allocation: NonZero::new(caps.channels),
            error_excess_bytes_per_second: Some(quotas.error_excess.per_second),
            error_excess_bytes_per_source: Some(quotas.error_excess_per_source.per_second),
            binding_replies_per_second: binding.map(|budget| budget.per_second),
            binding_replies_burst: binding.map(|budget| budget.burst),
            ipv6_prefix_bits: Some(quotas.ipv6_prefix_bits),
        }
    }
}
