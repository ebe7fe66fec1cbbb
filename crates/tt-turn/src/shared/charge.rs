//! What an allocation takes from the pools.

use super::Pool;

/// Units of the pools for an allocation and its reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The allocation, and a reserved port.
    pub(crate) allocations: u32,
    /// Its relays, and a reserved one.
    pub(crate) ports: u32,
    /// A reserved port.
    pub(crate) reservations: u32,
}

impl Charge {
    /// A relay after its allocation or reservation.
    pub(crate) const RESTING: Self = Self { allocations: 0, ports: 1, reservations: 0 };

    pub(super) const fn references(self) -> u32 {
        self.allocations + self.ports + self.reservations
    }

    pub(super) const fn parts(self) -> [(Pool, u32); 3] {
        [(Pool::Allocations, self.allocations), (Pool::Ports, self.ports), (Pool::Reservations, self.reservations)]
    }
}
