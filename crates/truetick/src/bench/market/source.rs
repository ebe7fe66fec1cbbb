//! Where frames come from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tt_journal::GzLines;

/// One Binance USD-M session of BTCUSDT.
pub(super) struct Source {
    /// Receive time in nanoseconds and the frame, in order; the REST snapshot stands among them.
    pub(super) frames: Vec<(u64, Vec<u8>)>,
}

/// Whether `frame` is the body of a REST snapshot.
pub(super) fn is_snapshot(frame: &[u8]) -> bool {
    frame.starts_with(b"{\"lastUpdateId\"")
}

/// Whether `frame` is an event of type `kind`.
pub(super) fn is_of(frame: &[u8], kind: &str) -> bool {
    let wanted = format!("\"e\":\"{kind}\"");
    frame.windows(wanted.len()).take(64).any(|window| window == wanted.as_bytes())
}

impl Source {
    /// The capture where `TRUETICK_DATA` is set, else the committed recording.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read() -> anyhow::Result<Self> {
        let path = match std::env::var_os("TRUETICK_DATA") {
            Some(folder) => PathBuf::from(folder).join("binance/usdm_btcusdt_20240808.gz"),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/recordings/binance_usdm_btcusdt.gz"),
        };
        let lines = GzLines::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let mut frames = Vec::new();
        for line in lines {
            let record = line.with_context(|| path.display().to_string())?;
            frames.push((record.ts_ns, record.payload));
        }
        ensure!(!frames.is_empty(), "{} is empty", path.display());
        Ok(Self { frames })
    }
}
