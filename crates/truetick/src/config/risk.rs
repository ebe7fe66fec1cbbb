//! `[risk]`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Limits of the gate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RiskSection {
    /// File of limits for `truetick risk`.
    pub limits: Option<PathBuf>,
}
