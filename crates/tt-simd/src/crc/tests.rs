use std::format;
use std::vec::Vec;

use super::{crc32, crc32c, scalar};

/// Bytes of a linear congruence, each run the same.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn check_value_of_the_catalogue() {
    assert_eq!((crc32(b"123456789"), scalar::crc32(b"123456789")), (0xCBF4_3926, 0xCBF4_3926));
}

#[test]
fn every_length_at_every_alignment_agrees_with_crc32fast() {
    // Miri interprets: steps that are odd still meet every remainder of sixteen.
    let (starts, step, len_max) = if cfg!(miri) { (2, 7, 300) } else { (16, 1, 1_500) };
    let bytes = bytes(starts + len_max);
    for start in 0..starts {
        for len in (0..=len_max).step_by(step) {
            let message = &bytes[start..start + len];
            let expected = crc32fast::hash(message);
            let which = format!("{len} bytes from {start}");
            assert_eq!(scalar::crc32(message), expected, "{which}, scalar");
            assert_eq!(crc32(message), expected, "{which}");
        }
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
fn the_processor_is_asked_and_used() {
    let has = std::is_x86_feature_detected!("pclmulqdq") && std::is_x86_feature_detected!("sse4.2");
    assert_eq!(crc32c(0, &[]).is_some(), has);
    assert_eq!(super::clmul::crc32(&bytes(16)).is_some(), has);
    assert_eq!(super::clmul::crc32(&bytes(15)), None);
}

/// The examples of RFC 3720, appendix B.4, and the check value of the catalogue.
#[test]
fn crc32c_of_published_examples() {
    let ascending: [u8; 32] = std::array::from_fn(|at| at as u8);
    let examples: [(&[u8], u32); 5] = [
        (&[0; 32], 0x8A91_36AA),
        (&[0xFF; 32], 0x62A8_AB43),
        (&ascending, 0x46DD_794E),
        (b"123456789", 0xE306_9283),
        (b"", 0),
    ];
    for (message, expected) in examples {
        assert!(crc32c(0, message).is_none_or(|crc| crc == expected), "{message:?}");
        for cut in 0..message.len() {
            let (first, second) = message.split_at(cut);
            let both = crc32c(0, first).and_then(|before| crc32c(before, second));
            assert!(both.is_none_or(|crc| crc == expected), "{message:?} cut at {cut}");
        }
    }
}
