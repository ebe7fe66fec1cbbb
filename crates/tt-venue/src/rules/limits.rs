//! How often a client may ask, and what a venue counts by the address that its clients come from.

use tt_model::Nanos;

/// So many at once, then one in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many at once.
    pub burst: u32,
    /// Then one in this time.
    pub gap: Nanos,
}

impl Rate {
    /// Returns the first time from `now` on at which another one is allowed, where those before allow a whole burst
    /// again at `whole_at`. An accepted one moves that to `whole_at.max(now) + gap`.
    #[must_use]
    pub fn next_at(self, whole_at: Nanos, now: Nanos) -> Nanos {
        let ahead = Nanos(self.gap.0.saturating_mul(u64::from(self.burst.saturating_sub(1))));
        whole_at.saturating_sub(ahead).max(now)
    }
}

/// What a venue counts by the source address of its clients, over all their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLimits {
    /// Venues of the same group share the limits.
    pub group: &'static str,
    /// The most open connections.
    pub connections_max: u32,
    /// How often a connection may be opened.
    pub connects: Rate,
    /// The most topics of all connections together.
    pub topics_max: Option<u32>,
    /// How often a message may be sent on any connection; `None` if the venue counts by connection only.
    pub messages: Option<Rate>,
    /// The weights of REST requests.
    pub weight: Option<WeightLimit>,
}

impl AddressLimits {
    /// Returns the limits of a venue that counts nothing else by address than `connects`.
    #[must_use]
    pub const fn new(group: &'static str, connects: Rate) -> Self {
        Self { group, connections_max: u32::MAX, connects, topics_max: None, messages: None, weight: None }
    }
}

/// A budget of weights that starts again with each minute of the venue's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightLimit {
    /// The header of a response that says how much of it is used, in lower case.
    pub header: &'static str,
    /// The weight that a client uses at most: what is left is for the account's own requests.
    pub most: u32,
}
