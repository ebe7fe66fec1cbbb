//! Checksums that were computed elsewhere (Python's `zlib`, Kraken's guide), through the whole engine.

use crate::wire::{Levels, Rig};
use tt_market::DropReason;
use tt_market::Proof;
use tt_model::Decimal;
use tt_venue::Venue;

/// `number / 10^decimals` with all of its decimals.
fn fixed(number: u64, decimals: usize) -> String {
    let digits = format!("{number:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    format!("{whole}.{fraction}")
}

/// The same as OKX writes it: without the zeros that end it.
fn short(number: u64, decimals: usize) -> String {
    fixed(number, decimals).trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn levels(count: u64, level: impl Fn(u64) -> (String, String)) -> Vec<(String, String)> {
    (0..count).map(level).collect()
}

fn texts(levels: &[(String, String)]) -> Vec<(&str, &str)> {
    levels.iter().map(|(px, qty)| (px.as_str(), qty.as_str())).collect()
}

/// Whether the engine takes the book for the venue's, and not with another checksum.
fn is_golden(venue: Venue, steps: [Decimal; 2], bids: Levels<'_>, asks: Levels<'_>, checksum: u32) -> Rig {
    let rig = || {
        let mut rig = Rig::with(venue, steps[0], steps[1], 30);
        rig.requests(50);
        rig
    };
    for wrong in [checksum ^ 1, checksum.wrapping_add(1), checksum.swap_bytes()] {
        let mut rig = rig();
        let frame = rig.wire.whole(bids, asks, wrong);
        assert_eq!(rig.frame(&frame), Err(DropReason::ChecksumMismatch), "{venue:?}");
    }
    let mut rig = rig();
    let frame = rig.wire.whole(bids, asks, checksum);
    rig.frame(&frame).unwrap();
    assert_eq!((rig.proof(), rig.counters().crc_matches), (Proof::Crc, 1), "{venue:?}");
    rig
}

const EIGHT: Decimal = Decimal::new(1, 8);

/// The snapshot of Kraken's "Book checksum (WebSocket v2)" guide.
#[test]
fn case_m12_kraken_the_guides_own_example() {
    let asks = [
        ("45285.2", "0.00100000"),
        ("45286.4", "1.54571953"),
        ("45286.6", "1.54571109"),
        ("45289.6", "1.54560911"),
        ("45290.2", "0.15890660"),
        ("45291.8", "1.54553491"),
        ("45294.7", "0.04454749"),
        ("45296.1", "0.35380000"),
        ("45297.5", "0.09945542"),
        ("45299.5", "0.18772827"),
    ];
    let bids = [
        ("45283.5", "0.10000000"),
        ("45283.4", "1.54582015"),
        ("45282.1", "0.10000000"),
        ("45281.0", "0.10000000"),
        ("45280.3", "1.54592586"),
        ("45279.0", "0.07990000"),
        ("45277.6", "0.03310103"),
        ("45277.5", "0.30000000"),
        ("45277.3", "1.54602737"),
        ("45276.6", "0.15445238"),
    ];
    is_golden(Venue::Kraken, [Decimal::new(1, 1), EIGHT], &bids, &asks, 3_310_070_434);
}

/// Prices and quantities that end in zeros, twelve levels of which ten count, and an update.
#[test]
fn case_m12_kraken_zeros_at_the_end_count_as_digits() {
    let asks = levels(12, |i| (fixed(300_010 + 10 * i, 2), fixed((i + 1) * 5_000_000, 8)));
    let bids = levels(12, |i| (fixed(300_000 - 10 * i, 2), fixed((i + 1) * 25_000_000, 8)));
    assert_eq!(asks[0], ("3000.10".to_owned(), "0.05000000".to_owned()));
    let steps = [Decimal::new(1, 2), EIGHT];
    let mut rig = is_golden(Venue::Kraken, steps, &texts(&bids), &texts(&asks), 3_826_577_269);
    let changes: [Levels<'_>; 2] = [&[("3000.00", "0.00001000")], &[("3000.10", "0.00000000")]];
    let frame = rig.wire.frame(false, changes, 0, 424_106_613);
    rig.frame(&frame).unwrap();
    assert_eq!(
        (rig.proof(), rig.counters().crc_matches),
        (Proof::Crc, 2),
        "the eleventh offer came up to the tenth place"
    );
}

/// Zeros in front do not count, and a side may have fewer than ten levels.
#[test]
fn case_m12_kraken_zeros_in_front_are_none() {
    let asks = levels(10, |i| (fixed(50_001 + 3 * i, 5), fixed((i + 1) * 1000, 8)));
    let bids = levels(7, |i| (fixed(50_000 - 10 * i, 5), fixed((i + 1) * 100_000_000, 8)));
    assert_eq!(asks[0], ("0.50001".to_owned(), "0.00001000".to_owned()));
    is_golden(Venue::Kraken, [Decimal::new(1, 5), EIGHT], &texts(&bids), &texts(&asks), 1_980_393_915);
}

/// Thirty levels of each side, of which 25 count in turn; a side that is exhausted is passed over; the sum is signed.
#[test]
fn case_m12_okx_signed_sums_of_25_levels() {
    let steps = [Decimal::new(1, 1), Decimal::new(1, 2)];
    let bids = levels(30, |i| (short(84_769 - 3 * i, 1), short(2560 + 10 * i, 2)));
    let asks = |factor: u64| levels(30, move |i| (short(84_770 + 2 * i, 1), short(415 + factor * i, 2)));
    assert_eq!(asks(7)[..2], [("8477", "4.15"), ("8477.2", "4.22")].map(|(px, qty)| (px.to_owned(), qty.to_owned())));
    let golden = |asks: &[(String, String)], checksum: i32| {
        let rig = is_golden(Venue::Okx, steps, &texts(&bids), &texts(asks), checksum as u32);
        assert_eq!(rig.engine.levels_len(rig.id), Some((30, asks.len())));
    };
    golden(&asks(7), 590_165_751);
    golden(&asks(8), -1_546_549_844);
    golden(&asks(7)[..3], 1_028_994_504);
    is_golden(Venue::Okx, steps, &texts(&bids[..2]), &[], -1_258_625_551_i32 as u32);
}

/// Kraken does not promise that its times rise: the checksum of the same frame decides.
#[test]
fn a_time_that_falls_costs_no_book_whose_checksum_fits() {
    let mut rig = Rig::live(Venue::Kraken);
    let earlier = |frame: String| {
        assert!(frame.contains("T22:13:20."), "{frame}");
        frame.replace("T22:13:20.", "T22:12:20.")
    };
    rig.delta(&[("9.8", "1.000")], &[]).unwrap();
    let frame = rig.wire.delta(&[("9.7", "2.000")], &[]);
    rig.frame(&earlier(frame)).unwrap();
    assert_eq!(rig.proof(), Proof::Unverified, "its checksum is of then");
    rig.delta(&[("9.7", "2.500")], &[]).unwrap();
    assert_eq!(rig.proof(), Proof::Crc);
    assert_eq!((rig.counters().times_fell, rig.counters().gaps, rig.counters().resyncs), (1, 0, 0));
    assert_eq!(rig.levels()[0], [(100, 1000), (99, 2000), (98, 1000), (97, 2500)]);
    // Where it does not fit, the book is lost as ever.
    let frame = rig.wire.delta(&[("9.6", "1.000")], &[]);
    let at = frame.find("\"checksum\":").unwrap() + 11;
    let digit = if &frame[at..=at] == "1" { "2" } else { "1" };
    let wrong = format!("{}{digit}{}", &frame[..at], &frame[at + 1..]);
    assert_eq!(rig.frame(&earlier(wrong)), Err(DropReason::ChecksumMismatch));
    assert_eq!((rig.proof(), rig.counters().times_fell), (Proof::Stale, 2));
}
