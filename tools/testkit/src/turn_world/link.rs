//! A link and what can befall a datagram on it.

use tt_model::Nanos;

use crate::draw::Draw;

/// The faults of a link at some time. Parts are of a hundred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weather {
    pub(super) loss: u64,
    pub(super) duplicate: u64,
    pub(super) reorder: u64,
    pub(super) corrupt: u64,
    pub(super) truncate: u64,
    /// Everything may take so much longer.
    pub(super) delay_ms: u64,
    pub(super) is_parted: bool,
    /// The longest datagram that passes; zero for any.
    pub(super) mtu: usize,
}

/// An arrival with its delay.
pub(super) type Arrival = (Nanos, Vec<u8>);

/// Returns up to two arrivals of a datagram.
pub(super) fn carry(draw: &mut Draw, weather: &Weather, bytes: Vec<u8>) -> [Option<Arrival>; 2] {
    let lost = weather.is_parted
        || (weather.mtu > 0 && bytes.len() > weather.mtu)
        || (weather.loss > 0 && draw.chance(weather.loss, 100));
    if lost {
        return [None, None];
    }
    let copy = (weather.duplicate > 0 && draw.chance(weather.duplicate, 100)).then(|| bytes.clone());
    [Some(arrive(draw, weather, bytes)), copy.map(|copy| arrive(draw, weather, copy))]
}

fn arrive(draw: &mut Draw, weather: &Weather, mut bytes: Vec<u8>) -> Arrival {
    if weather.corrupt > 0 && draw.chance(weather.corrupt, 100) && !bytes.is_empty() {
        let bit = draw.below(bytes.len() as u64 * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    if weather.truncate > 0 && draw.chance(weather.truncate, 100) {
        bytes.truncate(draw.below(bytes.len() as u64 + 1) as usize);
    }
    let mut delay_us = draw.between(5_000, 40_000);
    if weather.reorder > 0 && draw.chance(weather.reorder, 100) {
        delay_us += draw.between(50_000, 500_000);
    }
    if weather.delay_ms > 0 {
        delay_us += draw.below(weather.delay_ms * 1_000);
    }
    (Nanos(delay_us * 1_000), bytes)
}
