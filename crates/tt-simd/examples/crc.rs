//! Compares the speed of `tt_simd::crc32` and `crc32fast::hash`: nanoseconds per checksum by length, for messages in
//! the cache (as when FINGERPRINT is checked) and for a message with a byte that was just written.

use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 1_000_000;
const ROUNDS: usize = 15;

/// The fastest of the rounds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn both(len: usize, crc: impl Fn(&[u8]) -> u32) -> [f64; 2] {
    let mut message = vec![0x5A_u8; len];
    let ready = nanoseconds(|| {
        black_box(crc(black_box(&message)));
    });
    let written = nanoseconds(|| {
        let value = crc(black_box(&message));
        message[len - 1] ^= value as u8;
    });
    [ready, written]
}

fn main() {
    println!("bytes   ready: tt-simd  crc32fast   written: tt-simd  crc32fast   (ns)");
    for len in [20, 32, 44, 64, 100, 120, 300, 1_400] {
        let ([ready, written], [ready_fast, written_fast]) = (both(len, tt_simd::crc32), both(len, crc32fast::hash));
        println!("{len:5} {ready:16.2} {ready_fast:10.2} {written:18.2} {written_fast:10.2}");
    }
}
