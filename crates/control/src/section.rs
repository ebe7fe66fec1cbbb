//! `[http]`: the section of the configuration file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The default address of the control plane.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9641);

/// Names of the TURN server's metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricsNames {
    /// Those of truetick.
    #[default]
    Truetick,
    /// Those of coturn as well, so that its dashboards go on.
    Coturn,
}

impl FromStr for MetricsNames {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "truetick" => Ok(Self::Truetick),
            "coturn" => Ok(Self::Coturn),
            _ => Err("must be truetick or coturn"),
        }
    }
}

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
    /// Names of the TURN server's metrics.
    pub metrics_names: MetricsNames,
    /// `report.json` of a bench on this machine, for the page's figures.
    pub report: Option<PathBuf>,
}
