//! `[risk]`

use std::path::PathBuf;

use serde::Deserialize;

/// Limits of the gate.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RiskSection {
    /// File of limits for `truetick risk`.
    pub limits: Option<PathBuf>,
}
