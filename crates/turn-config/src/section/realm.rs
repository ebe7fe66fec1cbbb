//! `[[turn.realms]]`

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tt_turn::shared::RealmQuotas;

/// A realm in addition to `realm`. Requests select it by the listener or by their ORIGIN.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RealmSection {
    /// Its name as in REALM.
    pub name: String,
    /// Addresses of `listen`, `listen_tcp` or `listen_tls` that serve this realm only.
    pub listen: Vec<SocketAddr>,
    /// Values of ORIGIN (0x802F) that select it at the other addresses.
    pub origins: Vec<String>,
    /// Users as `NAME:PASSWORD` or `NAME:0xKEY`, for tests.
    pub user: Vec<String>,
    /// Files with one `NAME:PASSWORD` or `NAME:0xKEY` per line.
    pub user_file: Vec<PathBuf>,
    /// Files with one secret of time-limited credentials per line.
    pub auth_secret_file: Vec<PathBuf>,
    /// Live allocations of all users, reserved ports included [default: unlimited].
    pub allocations: Option<NonZero<u32>>,
    /// Live allocations of one user, reserved ports included [default: unlimited].
    pub user_allocations: Option<NonZero<u32>>,
    /// Relayed bytes per second of one user, as in `[turn.quotas]` [default: unlimited].
    pub user_bytes_per_second: Option<NonZero<u64>>,
    /// Relayed packets per second of one user [default: unlimited].
    pub user_packets_per_second: Option<NonZero<u64>>,
    /// Relayed bytes per second of one allocation [default: unlimited].
    pub allocation_bytes_per_second: Option<NonZero<u64>>,
}

impl RealmSection {
    /// Returns the limits.
    pub(crate) fn quotas(&self) -> RealmQuotas {
        let count = |limit: Option<NonZero<u32>>| limit.map_or(u32::MAX, NonZero::get);
        let rate = |limit: Option<NonZero<u64>>| limit.map_or(u64::MAX, NonZero::get);
        RealmQuotas {
            allocations: count(self.allocations),
            allocations_per_user: count(self.user_allocations),
            bytes_per_second_per_user: rate(self.user_bytes_per_second),
            packets_per_second_per_user: rate(self.user_packets_per_second),
            bytes_per_second_per_allocation: rate(self.allocation_bytes_per_second),
        }
    }
}
