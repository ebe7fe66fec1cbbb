use std::format;
use std::vec::Vec;

use super::{crc32, scalar};

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
    let has = std::is_x86_feature_detected!("pclmulqdq") && std::is_x86_feature_detected!("sse4.1");
    assert_eq!(super::clmul::crc32(&bytes(16)).is_some(), has);
    assert_eq!(super::clmul::crc32(&bytes(15)), None);
}
