//! Where frames come from: captures where `TRUETICK_DATA` leads to them, else the committed recordings of the simulator,
//! which are part of the program.

use std::hint::black_box;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context as _, anyhow, ensure};
use flate2::bufread::GzDecoder;
use tt_journal::{CbcapReader, GzLines, Record};

const USDM: &[u8] = include_bytes!("../../../../testkit/recordings/binance_usdm_btcusdt.gz");
/// `kraken_btcusd_depth25.cbcap` next to it, packed: a tenth of its bytes in the program.
const KRAKEN: &[u8] = include_bytes!("../../../recordings/kraken_btcusd_depth25.cbcap.gz");

/// One session of an instrument.
pub(super) struct Capture {
    /// Receive time in nanoseconds and the frame, in order; the REST snapshot is one of them.
    pub(super) frames: Vec<(u64, Vec<u8>)>,
    pub(super) is_captured: bool,
}

/// Reads a word of each line of `frame`, as the read from its socket has just written it.
pub(super) fn read(frame: &[u8]) {
    frame.iter().step_by(64).for_each(|byte| {
        black_box(*byte);
    });
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

fn captures() -> Option<PathBuf> {
    std::env::var_os("TRUETICK_DATA").map(PathBuf::from)
}

fn collect<E>(records: impl Iterator<Item = Result<Record, E>>, is_captured: bool) -> anyhow::Result<Capture>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let frames: Vec<_> =
        records.map(|record| record.map(|record| (record.ts_ns, record.payload))).collect::<Result<_, _>>()?;
    ensure!(!frames.is_empty(), "the session is empty");
    Ok(Capture { frames, is_captured })
}

impl Capture {
    /// Description of the frames.
    pub(super) const fn origin(&self) -> &'static str {
        if self.is_captured { "captured frames" } else { "the simulator's recording" }
    }

    /// Binance USD-M, BTCUSDT; read once.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn usdm() -> anyhow::Result<&'static Self> {
        static SESSION: OnceLock<Result<Capture, String>> = OnceLock::new();
        let read = || match captures() {
            Some(folder) => {
                let path = folder.join("binance/usdm_btcusdt_20240808.gz");
                let lines = GzLines::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
                collect(lines, true).with_context(|| path.display().to_string())
            }
            None => collect(GzLines::decode(USDM), false),
        };
        kept(&SESSION, read)
    }

    /// Kraken v2, book of BTC/USD with 25 levels; read once.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn kraken() -> anyhow::Result<&'static Self> {
        static SESSION: OnceLock<Result<Capture, String>> = OnceLock::new();
        let read = || match captures() {
            Some(folder) => {
                let path = folder.join("kraken/v2_btcusd_depth25.cbcap");
                let records = CbcapReader::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
                collect(records, true).with_context(|| path.display().to_string())
            }
            None => collect(CbcapReader::new(BufReader::new(GzDecoder::new(KRAKEN)))?, false),
        };
        kept(&SESSION, read)
    }
}

fn kept<T>(
    place: &'static OnceLock<Result<T, String>>,
    make: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<&'static T> {
    let made = place.get_or_init(|| make().map_err(|error| format!("{error:#}")));
    made.as_ref().map_err(|error| anyhow!(error.clone()))
}

/// The book's updates of [`Capture::usdm`]; made once.
///
/// # Errors
/// The session cannot be read, or its book is never joined.
pub(super) fn usdm_updates() -> anyhow::Result<&'static super::updates::Updates> {
    static UPDATES: OnceLock<Result<super::updates::Updates, String>> = OnceLock::new();
    kept(&UPDATES, || super::updates::Updates::of(Capture::usdm()?))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_packed_recording_is_the_committed_one() {
        let mut unpacked = Vec::new();
        GzDecoder::new(KRAKEN).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == include_bytes!("../../../../testkit/recordings/kraken_btcusd_depth25.cbcap"));
    }
}
