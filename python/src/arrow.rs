//! Books of a recording as Arrow, over the C stream interface.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchReader, StringArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use market_feed::{BookSide, Nanos};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::book::Book;
use crate::player::{Played, Player, error};
use crate::text::steps_text;

/// Rows of a batch.
const ROWS: usize = 16_384;
/// Levels of each side that a row may have.
const LEVELS_MAX: usize = 10_000;

/// Books of a recording as an Arrow stream. Each reader replays the recording from its beginning, batch by batch.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct ArrowBooks {
    path: PathBuf,
    levels: usize,
}

impl ArrowBooks {
    pub(crate) fn new(path: PathBuf, levels: usize) -> PyResult<Self> {
        if !(1..=LEVELS_MAX).contains(&levels) {
            return Err(PyValueError::new_err(format!("levels must be 1 to {LEVELS_MAX}, not {levels}")));
        }
        Ok(Self { path, levels })
    }
}

#[pymethods]
impl ArrowBooks {
    /// The stream (Arrow PyCapsule interface): `pyarrow.table(books)`, `polars.from_arrow(books)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may answer with its own schema.
        drop(requested_schema);
        let player = Player::open(&self.path, self.levels).map_err(|failure| error(&failure))?;
        let batches = Batches { player: Some(player), schema: schema(self.levels), rows: Rows::new(self.levels) };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The columns (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*schema(self.levels));
        let schema = schema.map_err(|failure| PyRuntimeError::new_err(failure.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Levels of each side in a row.
    #[getter]
    const fn levels(&self) -> usize {
        self.levels
    }
}

/// The columns: steps are whole numbers, levels that a book does not have are null.
fn schema(levels: usize) -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let label = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let side = || DataType::FixedSizeList(Arc::new(item()), levels as i32);
    let columns = [
        ("ts_event", time(), true),
        ("ts_recv", time(), false),
        ("venue", label(), false),
        ("symbol", label(), false),
        ("kind", label(), false),
        ("update_id", DataType::UInt64, false),
        ("proof", label(), false),
        ("ok", DataType::Boolean, false),
        ("tick_size", label(), false),
        ("lot_size", label(), false),
        ("bid_px", side(), false),
        ("bid_qty", side(), false),
        ("ask_px", side(), false),
        ("ask_qty", side(), false),
    ];
    let fields = columns.map(|(name, kind, is_nullable)| Field::new(name, kind, is_nullable));
    Arc::new(Schema::new(fields.to_vec()))
}

fn item() -> Field {
    Field::new("item", DataType::Int64, true)
}

/// A replay that fills batches.
struct Batches {
    player: Option<Player>,
    schema: SchemaRef,
    rows: Rows,
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let filled = self.fill();
        if let Err(failure) = filled {
            self.player = None;
            return Some(Err(ArrowError::ExternalError(format!("{failure:#}").into())));
        }
        (self.rows.len() > 0).then(|| RecordBatch::try_new(Arc::clone(&self.schema), self.rows.take()))
    }
}

impl Batches {
    /// Fills a batch; checks the state at the end of the recording.
    fn fill(&mut self) -> anyhow::Result<()> {
        while let Some(player) = self.player.as_mut().filter(|_| self.rows.len() < ROWS) {
            match player.step(usize::MAX)? {
                Played::Book(book) => self.rows.push(&book),
                Played::Nothing => {}
                Played::Ended => self.player.take().map_or(Ok(()), |player| player.finish().check())?,
            }
        }
        Ok(())
    }
}

/// Columns of a batch.
struct Rows {
    levels: usize,
    ts_event: Vec<Option<i64>>,
    ts_recv: Vec<i64>,
    update_ids: Vec<u64>,
    ok: Vec<bool>,
    venues: Labels,
    symbols: Labels,
    kinds: Labels,
    proofs: Labels,
    tick_sizes: Labels,
    lot_sizes: Labels,
    /// Prices and quantities of bids, then of asks.
    values: [Vec<i64>; 4],
    /// Whether a level is there: bids, asks.
    present: [Vec<bool>; 2],
}

impl Rows {
    fn new(levels: usize) -> Self {
        Self {
            levels,
            ts_event: Vec::new(),
            ts_recv: Vec::new(),
            update_ids: Vec::new(),
            ok: Vec::new(),
            venues: Labels::default(),
            symbols: Labels::default(),
            kinds: Labels::default(),
            proofs: Labels::default(),
            tick_sizes: Labels::default(),
            lot_sizes: Labels::default(),
            values: Default::default(),
            present: Default::default(),
        }
    }

    const fn len(&self) -> usize {
        self.ts_recv.len()
    }

    fn push(&mut self, book: &Book) {
        let image = book.image();
        let ns = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        self.ts_event.push(Some(ns(image.ts_event)).filter(|ns| *ns > 0));
        self.ts_recv.push(ns(image.ts_recv));
        self.update_ids.push(image.update_id);
        self.ok.push(image.status.proof.is_verified());
        self.venues.push(book.venue());
        self.symbols.push(book.symbol());
        self.kinds.push(book.kind());
        self.proofs.push(image.status.proof.name());
        self.tick_sizes.push(&steps_text(1, image.tick_size));
        self.lot_sizes.push(&steps_text(1, image.lot_size));
        for (side, first) in [(BookSide::Bid, 0), (BookSide::Ask, 2)] {
            let (start, len) = image.range(side);
            let levels = &image.levels[start..start + len];
            let rows = self.ts_recv.len() * self.levels;
            self.values[first].extend(levels.iter().map(|level| level[0]));
            self.values[first].resize(rows, 0);
            self.values[first + 1].extend(levels.iter().map(|level| level[1]));
            self.values[first + 1].resize(rows, 0);
            let present = &mut self.present[first / 2];
            present.resize(rows - self.levels + len, true);
            present.resize(rows, false);
        }
    }

    /// The columns in the order of the schema; the rows are empty afterwards.
    fn take(&mut self) -> Vec<ArrayRef> {
        let time = |values: TimestampNanosecondArray| Arc::new(values.with_timezone("UTC")) as ArrayRef;
        let [bids, asks] = [0, 1].map(|side: usize| {
            let present = std::mem::take(&mut self.present[side]);
            NullBuffer::new(BooleanBuffer::from(present))
        });
        let levels = self.levels as i32;
        let mut sides = std::mem::take(&mut self.values).into_iter().zip([&bids, &bids, &asks, &asks]);
        let mut side = || {
            let (values, present) = sides.next().unwrap_or_else(|| (Vec::new(), &bids));
            let values = Int64Array::new(values.into(), Some(present.clone()));
            Arc::new(FixedSizeListArray::new(Arc::new(item()), levels, Arc::new(values), None)) as ArrayRef
        };
        vec![
            time(std::mem::take(&mut self.ts_event).into()),
            time(std::mem::take(&mut self.ts_recv).into()),
            self.venues.take(),
            self.symbols.take(),
            self.kinds.take(),
            Arc::new(UInt64Array::from(std::mem::take(&mut self.update_ids))),
            self.proofs.take(),
            Arc::new(BooleanArray::from(std::mem::take(&mut self.ok))),
            self.tick_sizes.take(),
            self.lot_sizes.take(),
            side(),
            side(),
            side(),
            side(),
        ]
    }
}

/// A column of few texts.
#[derive(Default)]
struct Labels {
    keys: Vec<i32>,
    values: Vec<String>,
    found: HashMap<String, i32>,
}

impl Labels {
    fn push(&mut self, text: &str) {
        let key = self.found.get(text).copied().unwrap_or_else(|| {
            let key = self.values.len() as i32;
            self.values.push(text.to_owned());
            self.found.insert(text.to_owned(), key);
            key
        });
        self.keys.push(key);
    }

    /// The column so far. Keys keep their texts in the next batch.
    fn take(&mut self) -> ArrayRef {
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        let values = StringArray::from_iter_values(&self.values);
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
    }
}
