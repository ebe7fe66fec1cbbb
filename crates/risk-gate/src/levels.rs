//! Exposure and limits of the firm and of strategies, by instrument, for other threads.

use tt_model::{InstrumentId, sort_short_by_key};
use tt_risk::Exposure;
use tt_risk::tree::{Node, RowLimits};
use tt_sync::seqlock::{self, TableReader, TableWriter};

use gate_limits::LimitsFile;

/// Words of a row's cell.
const WORDS: usize = 5;

/// Exposure and limits of a node in an instrument. Quantities are in lots; limits are zero if the limits in force have
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelStatus {
    pub(crate) position: i64,
    pub(crate) position_long_max: i64,
    pub(crate) position_short_max: i64,
    pub(crate) open_orders: u32,
    pub(crate) open_orders_max: u32,
}

impl LevelStatus {
    fn of(exposure: &Exposure, limits: Option<&RowLimits>) -> Self {
        let status = Self { position: exposure.position.0, open_orders: exposure.open_orders, ..Self::default() };
        limits.map_or(status, |limits| Self {
            position_long_max: limits.position_long_max.0,
            position_short_max: limits.position_short_max.0,
            open_orders_max: limits.open_orders_max,
            ..status
        })
    }

    fn to_words(self) -> [u64; WORDS] {
        [
            self.position.cast_unsigned(),
            self.position_long_max.cast_unsigned(),
            self.position_short_max.cast_unsigned(),
            u64::from(self.open_orders),
            u64::from(self.open_orders_max),
        ]
    }

    fn from_words([position, long, short, open_orders, open_orders_max]: [u64; WORDS]) -> Self {
        Self {
            position: position.cast_signed(),
            position_long_max: long.cast_signed(),
            position_short_max: short.cast_signed(),
            open_orders: open_orders as u32,
            open_orders_max: open_orders_max as u32,
        }
    }
}

/// The readers' side.
#[derive(Debug)]
pub(crate) struct Levels {
    rows: Vec<(Node, InstrumentId)>,
    cells: TableReader<WORDS>,
}

/// The gate's side.
pub(crate) struct LevelsWriter {
    rows: Vec<(Node, InstrumentId, Option<RowLimits>)>,
    cells: TableWriter<WORDS>,
}

/// Creates both sides for the levels that `limits` have in `instruments`; none without a limits file.
pub(crate) fn levels(mut instruments: Vec<InstrumentId>, limits: Option<&LimitsFile>) -> (LevelsWriter, Levels) {
    sort_short_by_key(&mut instruments, |instrument| *instrument);
    instruments.dedup();
    let nodes = |instrument| limits.map_or_else(Vec::new, |limits| limits.levels_in(instrument));
    let rows: Vec<_> =
        instruments.into_iter().flat_map(|id| nodes(id).into_iter().map(move |node| (node, id))).collect();
    let (writer, reader) = seqlock::table(rows.len(), [0; WORDS]);
    let unset = rows.iter().map(|(node, instrument)| (*node, *instrument, None)).collect();
    (LevelsWriter { rows: unset, cells: writer }, Levels { rows, cells: reader })
}

impl LevelsWriter {
    /// Sets the limits; the next [`store`](Self::store) publishes them.
    pub(crate) fn replace_limits(&mut self, limits: &LimitsFile, now_ns: u64) {
        for (node, instrument, of) in &mut self.rows {
            *of = limits.level_limits(*node, *instrument, now_ns);
        }
    }

    pub(crate) fn store(&mut self, held: impl Fn(Node, InstrumentId) -> Option<Exposure>) {
        for (index, (node, instrument, limits)) in self.rows.iter().enumerate() {
            let exposure = held(*node, *instrument).unwrap_or_default();
            self.cells.store(index, &LevelStatus::of(&exposure, limits.as_ref()).to_words());
        }
    }
}

impl Levels {
    /// Returns each node and instrument with its exposure and limits.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (Node, InstrumentId, LevelStatus)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(index, (node, id))| Some((*node, *id, LevelStatus::from_words(self.cells.load(index)?))))
    }
}

#[cfg(test)]
mod tests {
    use tt_model::Qty;

    use super::*;

    /// Every field has another value.
    #[test]
    fn a_status_has_exposure_and_limits_and_is_read_as_written() {
        let limits = RowLimits {
            position_long_max: Qty(7),
            position_short_max: Qty(8),
            open_orders_max: 10,
            ..RowLimits::UNLIMITED
        };
        let exposure = Exposure { position: Qty(-11), open_buy_qty: Qty(12), open_sell_qty: Qty(13), open_orders: 14 };
        let expected = LevelStatus {
            position: -11,
            position_long_max: 7,
            position_short_max: 8,
            open_orders: 14,
            open_orders_max: 10,
        };
        let status = LevelStatus::of(&exposure, Some(&limits));
        assert_eq!((status, LevelStatus::from_words(status.to_words())), (expected, expected));
    }
}
