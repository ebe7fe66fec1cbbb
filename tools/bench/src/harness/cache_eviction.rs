//! Cache eviction before an operation that is timed cold.

use std::hint::black_box;
use std::sync::OnceLock;

use tt_os::machine::Machine;

/// Assumed size of the last cache where the machine does not report it.
const LLC_KIB_UNKNOWN: u64 = 32 * 1024;
/// A word of each line is read.
const LINE_WORDS: usize = 8;

/// Twice the last cache, at least 16 MiB.
fn words() -> &'static [u64] {
    static WORDS: OnceLock<Vec<u64>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let llc_kib = Machine::read().llc_kib.unwrap_or(LLC_KIB_UNKNOWN).clamp(8 * 1024, 512 * 1024);
        // Not zero, so that each page is backed by separate memory.
        vec![1; 2 * llc_kib as usize * 1024 / size_of::<u64>()]
    })
}

/// Reads a word of every line of a buffer twice as large as the last cache, so that neither code nor data of anything
/// else is left in a cache.
pub(crate) fn displace() {
    let sum: u64 = words().iter().step_by(LINE_WORDS).sum();
    black_box(sum);
}

/// Description of [`displace`] for the report.
pub(crate) fn how() -> String {
    let mib = size_of_val(words()) >> 20;
    format!("cold: before each operation a word of every cache line of {mib} MiB is read, twice the last cache")
}
