//! Payloads that identify themselves.
//!
//! Flow (4 bytes), sequence (8), CRC-32 of all the rest (4), and content from a seeded pool at a place that the
//! sequence decides. What arrives is compared with what must have been sent, byte by byte.

/// Bytes before the content.
pub(crate) const HEAD_LEN: usize = 16;
const POOL_LEN: usize = 1 << 16;
/// Coprime to the pool's length, so that 65,536 payloads in a row differ in their content.
const STRIDE: u64 = 40_503;

/// What payloads are cut from.
pub(crate) struct Pool(Vec<u8>);

impl Pool {
    /// `len_max` is that of the longest payload.
    pub(crate) fn new(seed: u64, len_max: usize) -> Self {
        let mut state = seed | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d) as u8
        };
        let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(POOL_LEN).collect();
        bytes.extend_from_within(..len_max);
        Self(bytes)
    }

    fn content(&self, sequence: u64, len: usize) -> &[u8] {
        let start = (sequence.wrapping_mul(STRIDE) % POOL_LEN as u64) as usize;
        &self.0[start..start + len]
    }

    /// Appends the payload number `sequence` of `flow`, `len` bytes long.
    pub(crate) fn write(&self, flow: u32, sequence: u64, len: usize, out: &mut Vec<u8>) {
        let mut head = [0; HEAD_LEN];
        head[..4].copy_from_slice(&flow.to_le_bytes());
        head[4..12].copy_from_slice(&sequence.to_le_bytes());
        let content = self.content(sequence, len - HEAD_LEN);
        let sum = checksum(&head, content);
        head[12..].copy_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(content);
    }

    /// Flow and sequence of a payload that is `len` long and as it was written.
    pub(crate) fn verify(&self, bytes: &[u8], len: usize) -> Option<(u32, u64)> {
        let (head, content) = bytes.split_first_chunk::<HEAD_LEN>()?;
        let flow = u32::from_le_bytes(head[..4].try_into().ok()?);
        let sequence = u64::from_le_bytes(head[4..12].try_into().ok()?);
        let sum = u32::from_le_bytes(head[12..].try_into().ok()?);
        let is_whole = bytes.len() == len && sum == checksum(head, content);
        (is_whole && content == self.content(sequence, len - HEAD_LEN)).then_some((flow, sequence))
    }
}

fn checksum(head: &[u8; HEAD_LEN], content: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..12]);
    crc.update(content);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn any_changed_byte_is_noticed() {
        let pool = Pool::new(7, 200);
        let mut bytes = Vec::new();
        pool.write(3, 99, 160, &mut bytes);
        assert_eq!(pool.verify(&bytes, 160), Some((3, 99)));
        assert_eq!(pool.verify(&bytes[..159], 160), None);
        for index in 0..160 {
            bytes[index] ^= 0x10;
            assert_eq!(pool.verify(&bytes, 160), None, "byte {index}");
            bytes[index] ^= 0x10;
        }
    }

    #[test]
    fn contents_differ_for_65536_payloads_in_a_row() {
        let pool = Pool::new(7, 200);
        let starts: std::collections::HashSet<_> = (0..65_536).map(|n| pool.content(n, 16).as_ptr() as usize).collect();
        assert_eq!(starts.len(), 65_536);
    }
}
