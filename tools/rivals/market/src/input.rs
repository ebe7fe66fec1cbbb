//! Where frames come from, and what the books must be at their end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tt_journal::{CbcapReader, GzLines, Record};

use crate::wire::Levels;

/// How much of its input a run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Live frames of a session.
    pub(crate) frames_max: usize,
    pub(crate) snapshots: u64,
    pub(crate) tickers: usize,
}

impl Extent {
    /// What is timed.
    pub(crate) const TIMED: Self = Self { frames_max: usize::MAX, snapshots: 200, tickers: 1 << 16 };
    /// What is stepped through, at a microsecond or two an instruction.
    pub(crate) const COUNTED: Self = Self { frames_max: 8, snapshots: 1, tickers: 256 };
}

/// Both sides, the best level first.
pub(crate) type Sides = [Vec<(i64, i64)>; 2];

/// One Binance USD-M session of BTCUSDT: a snapshot and the depth frames around it.
pub(crate) struct Feed {
    pub(crate) name: String,
    pub(crate) extent: Extent,
    pub(crate) snapshot: Vec<u8>,
    /// Frames from before the snapshot and just after it, up to the one that continues it; then the rest.
    pub(crate) early: Vec<Record>,
    pub(crate) live: Vec<Record>,
    /// The position of the snapshot among the first frames.
    pub(crate) snapshot_at: usize,
    /// Levels of all live frames.
    pub(crate) levels: usize,
    /// The book at the end.
    pub(crate) end: Sides,
    /// The lowest and the highest price of the session.
    pub(crate) px_range: (i64, i64),
}

/// A Kraken session: one book with a checksum in each frame.
pub(crate) struct Verified {
    pub(crate) name: String,
    pub(crate) depth: usize,
    /// The first is the book's snapshot.
    pub(crate) frames: Vec<Record>,
}

fn folder() -> (PathBuf, bool) {
    match std::env::var_os("TRUETICK_DATA") {
        Some(folder) => (PathBuf::from(folder), true),
        None => (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/recordings"), false),
    }
}

impl Feed {
    /// The capture where `TRUETICK_DATA` is set, else the committed recording of the simulator.
    ///
    /// # Errors
    /// The file cannot be read, or its frames do not continue its snapshot.
    pub(crate) fn read(extent: Extent) -> anyhow::Result<Self> {
        let (folder, is_captured) = folder();
        let file = if is_captured { "binance/usdm_btcusdt_20240808.gz" } else { "binance_usdm_btcusdt.gz" };
        let path = folder.join(file);
        let lines = GzLines::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let all = lines.collect::<Result<Vec<Record>, _>>().with_context(|| path.display().to_string())?;
        let is_snapshot = |record: &Record| record.payload.starts_with(b"{\"lastUpdateId\"");
        let is_depth = |record: &Record| {
            record.payload.windows(17).take(64).any(|window| window == b"\"e\":\"depthUpdate\"" as &[u8])
        };
        let snapshot = all.iter().position(is_snapshot).context("no snapshot")?;
        let body = Levels::of_body(&all[snapshot].payload)?;
        let depth = |records: &[Record]| records.iter().filter(|record| is_depth(record)).cloned().collect::<Vec<_>>();
        let (mut early, mut live) = (depth(&all[..snapshot]), depth(&all[snapshot..]));
        let snapshot_at = early.len();
        let continues =
            |record: &Record| Levels::of_frame(&record.payload).is_ok_and(|frame| frame.last_id >= body.last_id);
        let is_joined = early.iter().any(continues);
        let joining = if is_joined {
            0
        } else {
            1 + live.iter().position(continues).context("nothing continues the snapshot")?
        };
        // One more, so that every engine has its book before the time begins.
        early.extend(live.drain(..joining + 1));
        live.truncate(extent.frames_max);
        let name = format!("{} {file}", if is_captured { "captured" } else { "simulated" });
        let snapshot = all[snapshot].payload.clone();
        let mut session = Self {
            name,
            extent,
            snapshot,
            early,
            live,
            snapshot_at,
            levels: 0,
            end: Sides::default(),
            px_range: (i64::MAX, 0),
        };
        session.replay(&body)?;
        Ok(session)
    }

    /// Early frames that the snapshot does not hold already.
    pub(crate) fn joining(&self, snapshot_id: u64) -> impl Iterator<Item = anyhow::Result<Levels>> {
        let frames = self.early.iter().map(|record| Levels::of_frame(&record.payload));
        frames.filter(move |frame| frame.as_ref().map_or(true, |frame| frame.last_id >= snapshot_id))
    }

    /// What a plain reader makes of it.
    fn replay(&mut self, body: &Levels) -> anyhow::Result<()> {
        let mut sides: [BTreeMap<i64, i64>; 2] = Default::default();
        let (mut low, mut high) = (i64::MAX, 0);
        let mut set = |levels: &Levels| {
            for (side, levels) in sides.iter_mut().zip([&levels.bids, &levels.asks]) {
                for (px, qty) in levels {
                    (low, high) = (low.min(*px), high.max(*px));
                    if *qty == 0 {
                        side.remove(px)
                    } else {
                        side.insert(*px, *qty)
                    };
                }
            }
        };
        set(body);
        let mut last_id = None;
        let live = self.live.iter().map(|record| Levels::of_frame(&record.payload));
        let mut levels = 0;
        for (index, frame) in self.joining(body.last_id).chain(live).enumerate() {
            let frame = frame?;
            ensure!(
                last_id.is_none_or(|last_id| last_id == frame.before_id),
                "frame {index} does not continue the book"
            );
            last_id = Some(frame.last_id);
            set(&frame);
            levels += frame.len();
        }
        let joining: usize = self.joining(body.last_id).filter_map(Result::ok).map(|frame| frame.len()).sum();
        self.levels = levels - joining;
        self.px_range = (low, high);
        let [bids, asks] = sides;
        self.end = [bids.into_iter().rev().collect(), asks.into_iter().collect()];
        Ok(())
    }
}

impl Verified {
    /// The capture where `TRUETICK_DATA` is set, else the committed recording of the simulator.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(extent: Extent) -> anyhow::Result<Self> {
        let (folder, is_captured) = folder();
        let file = if is_captured { "kraken/v2_btcusd_depth25.cbcap" } else { "kraken_btcusd_depth25.cbcap" };
        let path = folder.join(file);
        let reader = CbcapReader::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let all = reader.collect::<Result<Vec<Record>, _>>().with_context(|| path.display().to_string())?;
        let mut frames: Vec<Record> =
            all.into_iter().filter(|record| record.payload.starts_with(b"{\"channel\":\"book\"")).collect();
        frames.truncate(extent.frames_max.saturating_add(1));
        ensure!(frames.len() > 1, "{} holds no book", path.display());
        let name = format!("{} {file}", if is_captured { "captured" } else { "simulated" });
        Ok(Self { name, depth: 25, frames })
    }
}
