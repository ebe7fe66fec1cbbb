//! `[http]`

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the page, the metrics and the JSON interfaces are served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// Address and TCP port; 127.0.0.1:9641 unless given.
    pub listen: Option<SocketAddr>,
    /// File with the token that the list of allocations asks for.
    pub api_token_file: Option<PathBuf>,
    /// `report.json` of a bench on this machine, for the page's figures.
    pub report: Option<PathBuf>,
}
