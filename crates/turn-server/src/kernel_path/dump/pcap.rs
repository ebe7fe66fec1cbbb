//! The format of pcap files with nanoseconds (`draft-ietf-opsawg-pcap`), of Ethernet frames.

use tt_model::Nanos;
use tt_path::dump::Frame;

const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const VERSION: [u16; 2] = [2, 4];
/// Most bytes of a frame; larger than any.
const FRAME_MAX: u32 = 1 << 18;
const ETHERNET: u32 = 1;
const SECOND_NS: u64 = 1_000_000_000;

/// Returns the header of a file.
pub(super) fn header() -> [u8; 24] {
    let version = u32::from(VERSION[0]) | u32::from(VERSION[1]) << 16;
    words([MAGIC_NANOSECONDS, version, 0, 0, FRAME_MAX, ETHERNET])
}

/// Returns the header of a frame that was copied at `at`, Unix time.
pub(super) fn frame_header(frame: &Frame<'_>, at: Nanos) -> [u8; 16] {
    let kept = frame.bytes.len() as u32;
    // Seconds have 32 bits until 2106.
    words([(at.0 / SECOND_NS) as u32, (at.0 % SECOND_NS) as u32, kept, frame.len])
}

/// Little-endian: readers find out by the first word.
fn words<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a file by tcpdump (`--nano`, Ethernet) on a little-endian machine.
    #[test]
    fn headers_are_those_of_a_nanosecond_file() {
        let expected = "4d3cb2a1 02000400 00000000 00000000 00000400 01000000";
        assert_eq!(hex(&header()), expected);
        let frame = Frame { at: Nanos(0), len: 300, bytes: &[0; 258] };
        let found = hex(&frame_header(&frame, Nanos(1_700_000_001 * SECOND_NS + 23)));
        assert_eq!(found, "01f15365 17000000 02010000 2c010000");
    }

    fn hex(bytes: &[u8]) -> String {
        let words = bytes.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        words.collect::<Vec<_>>().join(" ")
    }
}
