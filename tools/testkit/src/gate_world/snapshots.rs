//! Snapshots of a journal: each with the records behind it is the whole journal.

use risk_gate::{JournalReader, Replay};
use tt_model::SplitMix64;

use super::disk::SimDisk;
use super::host::Broken;

/// Performs the journal on `disk`, and takes snapshots at some records, each of which performs the rest: every answer, with
/// all bytes of each verdict, and the state at the end are the same.
pub(super) fn compare(disk: &SimDisk, random: &mut SplitMix64) -> Result<(), Broken> {
    let broken = |error: anyhow::Error| (7, format!("{error:#}"));
    let mut reader = JournalReader::new(disk).map_err(broken)?;
    let mut replays: Vec<Replay> = Vec::new();
    let mut next = 1;
    while let Some(record) = reader.read().map_err(broken)? {
        if replays.is_empty() {
            replays.push(Replay::begin(&record).map_err(broken)?);
        } else {
            for (index, replay) in replays.iter_mut().enumerate() {
                if let Some(divergence) = replay.step(&record) {
                    return Err((7, format!("snapshot {index}: {divergence}")));
                }
            }
        }
        if record.number >= next {
            next = 3 * record.number + random.below(1 + record.number);
            let (restored, place) = Replay::restore(&replays[0].snapshot(&reader.end())).map_err(broken)?;
            if place != reader.end() {
                return Err((7, format!("a snapshot of {:?} is of {place:?}", reader.end())));
            }
            replays.push(restored);
        }
    }
    let hashes: Vec<_> = replays.iter_mut().map(Replay::state_hash).collect();
    let other = hashes.iter().position(|hash| *hash != hashes[0]);
    // The hash has what a snapshot has; derived code prints every field. The last snapshot has the fewest records behind it.
    let last = replays.len().saturating_sub(1);
    let has_another_text =
        || replays.first().is_some_and(|whole| format!("{whole:?}") != format!("{:?}", replays[last]));
    match other.or_else(|| has_another_text().then_some(last)) {
        Some(index) => Err((7, format!("snapshot {index} and its records lead to another state"))),
        None => Ok(()),
    }
}
