//! How packets of bound channels travel.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the packets of bound channels travel: by sockets, or by an XDP program in the kernel where it can be attached.
/// Without the privileges or on another interface the sockets relay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelMode {
    /// By sockets alone.
    #[default]
    Off,
    /// In every driver with native XDP and no known fault.
    Auto,
    /// In every driver that accepts the program.
    Native,
    /// Behind the driver, on every interface. No gain over sockets was measured.
    Generic,
}

impl KernelMode {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 4] = ["off", "auto", "native", "generic"];
}

impl FromStr for KernelMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            "native" => Ok(Self::Native),
            "generic" => Ok(Self::Generic),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}
