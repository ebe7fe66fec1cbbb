//! The twin: sixteen bytes a step from tables.

/// `TABLES[k][byte]`: the remainder of `byte` followed by `k` zero bytes.
static TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0xEDB8_8320);
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The remainder of the four bytes of `word` followed by `ZEROS` zero bytes.
#[inline(always)]
fn word<const ZEROS: usize>(word: u32) -> u32 {
    let [a, b, c, d] = word.to_le_bytes();
    TABLES[ZEROS + 3][a as usize]
        ^ TABLES[ZEROS + 2][b as usize]
        ^ TABLES[ZEROS + 1][c as usize]
        ^ TABLES[ZEROS][d as usize]
}

/// CRC-32 of `bytes`.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0;
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        let words = block.as_chunks::<4>().0;
        crc = word::<12>(u32::from_le_bytes(words[0]) ^ crc)
            ^ word::<8>(u32::from_le_bytes(words[1]))
            ^ word::<4>(u32::from_le_bytes(words[2]))
            ^ word::<0>(u32::from_le_bytes(words[3]));
    }
    let (words, tail) = rest.as_chunks::<4>();
    for four in words {
        crc = word::<0>(u32::from_le_bytes(*four) ^ crc);
    }
    for byte in tail {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !crc
}
