//! Batches into the ring and out of it, on one core: what the calls themselves cost.

use anyhow::ensure;
use tt_model::OrderTerms;
use tt_sync::spsc::{self, Consumer, Producer};

use super::ENGINE;
use super::evaluator::orders;
use crate::harness::operation::{Label, Operation};

/// Events of a batch, as in `tools/rivals/ring`.
const BATCH: usize = 64;
const BATCHES: usize = 256;
const SLOTS: usize = 1_024;

/// The call that appends a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// One `push` for each event.
    Push,
    /// `push_slice`.
    Slice,
    /// `push_with`.
    With,
}

impl Call {
    /// Texts of the row.
    pub(super) fn label(self) -> Label {
        let (name, what) = match self {
            Self::Push => {
                ("ring_push_64_ns", "64 events by one Producer::push each, then one Consumer::drain, on one core")
            }
            Self::Slice => ("ring_push_slice_64_ns", "the same events by one Producer::push_slice"),
            Self::With => ("ring_push_with_64_ns", "the same events by one Producer::push_with"),
        };
        Label { name, engine: ENGINE, what, published: Vec::new(), rate: None }
    }
}

/// A batch through the ring by one of the calls.
pub(super) struct Batches {
    call: Call,
    orders: Vec<OrderTerms>,
    producer: Producer<OrderTerms>,
    consumer: Consumer<OrderTerms>,
}

impl Batches {
    pub(super) fn new(call: Call) -> Self {
        let (producer, consumer) = spsc::ring(SLOTS);
        Self { call, orders: orders(64, BATCH * BATCHES), producer, consumer }
    }

    fn batch(&self, index: usize) -> &[OrderTerms] {
        &self.orders[index * BATCH..][..BATCH]
    }
}

impl Operation for Batches {
    fn inputs(&self) -> usize {
        BATCHES
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        let batch = &self.orders[index * BATCH..][..BATCH];
        let pushed = match self.call {
            Call::Push => batch.iter().map_while(|event| self.producer.push(*event).ok()).count(),
            Call::Slice => self.producer.push_slice(batch),
            Call::With => {
                let mut events = batch.iter();
                self.producer.push_with(BATCH, || events.next().copied().unwrap_or_default())
            }
        };
        let mut digest = pushed as u64;
        self.consumer.drain(BATCH, |event| digest = digest.wrapping_add(event.client_id));
        digest
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let expected = self.batch(index).iter().map(|event| event.client_id).fold(BATCH as u64, u64::wrapping_add);
        ensure!(self.run(index) == expected, "batch {index}: other events");
        Ok(expected)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// In instructions, which no other load of the machine changes.
    #[test]
    fn a_batch_by_one_call_is_never_slower_than_single_pushes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/counts");
        let mut compared = 0;
        for entry in fs::read_dir(folder).expect("counts are kept") {
            let text = fs::read_to_string(entry.expect("an entry").path()).expect("a text");
            let kept: toml::Table = toml::from_str(&text).expect("TOML");
            let count = |row: &str| kept["rows"].get(row).and_then(toml::Value::as_float).expect("it is counted");
            let push = count("ring_push_64_ns");
            for row in ["ring_push_slice_64_ns", "ring_push_with_64_ns"] {
                assert!(count(row) <= push, "{row}: {} instructions, single pushes {push}", count(row));
                compared += 1;
            }
        }
        assert!(compared > 0, "no counts are kept");
    }
}
