//! The section `[risk]` of the configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The section `[risk]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RiskSection {
    /// Path of the limits file of `truetick risk`, and of the gate of `truetick serve`.
    pub limits: Option<PathBuf>,
    /// Path of the file of modes of `truetick risk`.
    pub modes: Option<PathBuf>,
    /// Folder of the journal of `truetick risk`.
    pub journal: Option<PathBuf>,
    /// Whether a verdict waits until its record is on the disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub durable: bool,
    /// Bytes of a segment of the journal.
    pub journal_segment_bytes: Option<usize>,
}
