//! WebSocket frames of every venue: the scanner and the general reader say the same of them, and what either accepts is
//! JSON to a library.

use std::fmt::Write as _;
use std::ops::Range;

use tt_venue::Venue;
use tt_venue::event::{BookDelta, BookSnapshot, Event, EventBuffer, Levels};

const LEVELS_MAX: usize = 512;
const ENTRIES_MAX: usize = 64;

/// Reads `data` as a frame of the venue that its first byte selects.
///
/// # Panics
/// The readers disagree, or accept what is not JSON.
pub fn run(data: &[u8]) {
    let Some((venue, frame)) = data.split_first() else { return };
    let venue = Venue::ALL[usize::from(*venue) % Venue::COUNT];
    let fastest = read(venue, frame, Reader::Fastest);
    let general = read(venue, frame, Reader::General);
    assert_eq!(fastest, general, "{}: {}", venue.name(), String::from_utf8_lossy(frame));
    if fastest.is_ok() {
        let json: Result<serde_json::Value, _> = serde_json::from_slice(frame);
        assert!(json.is_ok(), "{}: {json:?}: {}", venue.name(), String::from_utf8_lossy(frame));
    }
}

#[derive(Clone, Copy)]
enum Reader {
    Fastest,
    General,
}

/// Everything that the reader says of the frame, or why it rejects it.
fn read(venue: Venue, frame: &[u8], reader: Reader) -> Result<String, String> {
    let mut buffer = EventBuffer::new(LEVELS_MAX, ENTRIES_MAX);
    let event = match reader {
        Reader::Fastest => venue.parse(frame, &mut buffer),
        Reader::General => venue.parse_general(frame, &mut buffer),
    };
    let event = event.map_err(|error| format!("{error:?}"))?;
    let mut all = format!("{event:?}");
    if let Event::BookDelta(BookDelta { levels, .. }) | Event::BookSnapshot(BookSnapshot { levels, .. }) = &event {
        // The order of the sides in the buffer is the reader's choice.
        all = all.replace(&format!("{levels:?}"), &sides(levels, &buffer));
    }
    write!(all, " {:?}", buffer.trades()).expect("memory");
    write!(all, " {:?} {:?} {:?}", buffer.order_updates(), buffer.tickers(), buffer.candles()).expect("memory");
    write!(all, " {:?} {:?} {:?}", buffer.liquidations(), buffer.executions(), buffer.balances()).expect("memory");
    write!(all, " {:?} {:?} {:?}", buffer.positions(), buffer.book_orders(), buffer.taken_order()).expect("memory");
    Ok(all)
}

/// The levels of each side.
fn sides(levels: &Levels, buffer: &EventBuffer) -> String {
    let side = |range: Range<usize>| format!("{:?}", &buffer.levels()[range]);
    let Levels { px_decimals, qty_decimals, .. } = levels;
    format!("{} {} {px_decimals} {qty_decimals}", side(levels.bids()), side(levels.asks()))
}
