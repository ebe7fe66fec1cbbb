//! Addresses of balancers in flags and files.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Balancers that speak the PROXY protocol, written as `ADDR` or `CIDR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Balancers(IpNet);

impl Balancers {
    /// Returns whether `ip` is one of them.
    #[must_use]
    pub fn contain(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip.to_canonical())
    }
}

impl fmt::Display for Balancers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Balancers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        net.map(Self).ok_or_else(|| format!("`{text}` is neither an address nor a CIDR"))
    }
}

impl From<Balancers> for String {
    fn from(balancers: Balancers) -> Self {
        balancers.to_string()
    }
}

impl TryFrom<String> for Balancers {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
