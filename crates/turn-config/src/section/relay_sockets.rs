//! Whether each relay has a socket.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whether each relay has a socket, or all relays of a worker share one. Without the privileges, each has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelaySockets {
    /// A socket for each relay.
    #[default]
    Each,
    /// One socket for all relays of a worker and address family; an `sk_lookup` program gives it their datagrams, and raw
    /// sockets send.
    Shared,
}

impl RelaySockets {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 2] = ["each", "shared"];
}

impl FromStr for RelaySockets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "each" => Ok(Self::Each),
            "shared" => Ok(Self::Shared),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}
