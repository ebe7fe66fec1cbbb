//! `[http]`: the section of the configuration file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The default address of the control plane.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9641);

/// Address of the page, the metrics and the JSON API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// Address and TCP port.
    pub listen: Option<SocketAddr>,
    /// File with the API token, which the list of allocations and control of the gate require.
    pub api_token_file: Option<PathBuf>,
    /// Host names by which the page and the API may be requested, besides addresses and `localhost`. Any name reaches
    /// `/metrics`, `/healthz` and `/readyz`.
    pub allowed_hosts: Vec<String>,
    /// `report.json` of a bench on this machine, for the page's figures.
    pub report: Option<PathBuf>,
}
