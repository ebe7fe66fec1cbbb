//! How long it takes to refuse a megabyte: the suite `machine` runs these tests in the release profile.

use std::time::Duration;

use testkit::cpu_time;
use tt_venue::Venue;
use tt_venue::event::EventBuffer;
use tt_venue::rules::JoinRule;

use crate::texts::book_frame;
use crate::wire::Wire;

/// The longest time for a megabyte of what is refused; without optimisation only what is linear.
const A_MEGABYTE_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 1 });
/// The same if 50,000 valid levels come before the fault: they are read first, and then once more by name.
const LEVELS_FIRST_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 60 });

/// Frames of about `len` bytes that are no whole JSON of the documented form.
pub(crate) fn refused(venue: Venue, len: usize) -> Vec<(&'static str, String)> {
    let fill = |unit: &str| unit.repeat(len / unit.len());
    let frame = book_frame(venue);
    let px: Vec<String> = (0..len / 20).map(|i| format!("{}.{}", 9_000 - i / 10, 9 - i % 10)).collect();
    let levels: Vec<_> = px.iter().map(|px| (px.as_str(), "0.125")).collect();
    let long = Wire::new(venue).frame(venue.rules().join == JoinRule::Whole, [&levels, &[]], 100, 1);
    let last = long.rfind("0.125").unwrap();
    let keys = (0..len / 16).map(|i| format!("\"k{i:09}\":1,")).collect::<String>();
    let shapes = [
        ("brackets", fill("[")),
        ("objects", fill("{\"a\":")),
        ("spaces", fill(" ")),
        ("digits", fill("9")),
        ("text", format!("{{\"strange\":\"{}", fill("abcdefgh"))),
        ("escapes", format!("{{\"strange\":\"{}", fill("\\u0041\\n"))),
        ("keys", format!("{{{}", fill("\"aaaaaaaaaaaa\":1,"))),
        ("different keys", format!("{{{keys}")),
        ("levels without an end", long[..long.len() - 1].to_owned()),
        ("levels and one brace more", format!("{long}}}")),
        ("levels and a key that is doubled", format!("{},\"strange\":1,\"strange\":2}}", &long[..long.len() - 1])),
        ("levels, the first one wrong", long.replacen("0.125", "0.1x5", 1)),
        ("levels, the last one wrong", format!("{}-{}", &long[..last], &long[last..])),
        ("a frame and a text", format!("{{\"strange\":\"{}\",{}x", fill("abcdefgh"), &frame[1..])),
        ("a frame and a list", format!("{{\"strange\":[{}1],{}x", fill("1.25,"), &frame[1..])),
        ("a frame and spaces", format!("{frame}{}x", fill(" "))),
        ("no UTF-8", fill("\u{e9}") + "\""),
    ];
    // With a brace at the end nothing shows at once that the frame is none.
    let closed = shapes.clone().map(|(shape, text)| (shape, text + "]}"));
    shapes.into_iter().chain(closed).collect()
}

/// The shortest of some times that the venue's parser takes to refuse `text`.
pub(crate) fn time_to_refuse(venue: Venue, text: &str, times: usize) -> Duration {
    let mut buffer = EventBuffer::new(65_536, 1024);
    let times = (0..times).map(|_| {
        let start = cpu_time();
        assert!(venue.parse(text.as_bytes(), &mut buffer).is_err(), "{venue:?} {}", &text[..text.len().min(80)]);
        cpu_time() - start
    });
    times.min().expect("at least one")
}

#[test]
fn case_m22_a_megabyte_of_anything_is_refused_in_a_millisecond() {
    let mut slowest = [(Duration::ZERO, String::new()), (Duration::ZERO, String::new())];
    for venue in Venue::ALL {
        for (shape, text) in refused(venue, 1_000_000) {
            let best = time_to_refuse(venue, &text, if cfg!(debug_assertions) { 1 } else { 7 });
            let per_megabyte = best.mul_f64(1e6 / text.len() as f64);
            let slowest = &mut slowest[usize::from(shape.starts_with("levels"))];
            if per_megabyte > slowest.0 {
                *slowest = (per_megabyte, format!("{venue:?} {shape}"));
            }
            println!("{venue:?} {shape}: {:.3} ms/MB", per_megabyte.as_secs_f64() * 1e3);
        }
    }
    for (slowest, max) in slowest.iter().zip([A_MEGABYTE_MAX, LEVELS_FIRST_MAX]) {
        println!("slowest: {} {:.3} ms/MB", slowest.1, slowest.0.as_secs_f64() * 1e3);
        assert!(slowest.0 < max, "{slowest:?}");
    }
}
