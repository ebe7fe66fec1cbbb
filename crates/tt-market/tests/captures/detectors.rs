//! Binance's tickers as second witnesses of its books; what every proof notices is in `mutations`.

use crate::captured::{Capture, Feed};
use tt_market::DropReason;
use tt_market::Proof;

/// A flipped digit that changes the best level of an update id for which a ticker is there cannot pass.
#[test]
fn tickers_notice_a_wrong_best_level() {
    let Some(capture) = Capture::require_usdm() else { return };
    let mut feed = Feed::new(&capture);
    let mut tried = 0;
    for frame in &capture.frames[..20_000] {
        let top = feed.top();
        let is_ticker = frame.payload.windows(10).any(|window| window == b"bookTicker");
        let id = format!("\"u\":{},", top.update_id);
        if is_ticker && frame.payload.windows(id.len()).any(|window| window == id.as_bytes()) {
            let mut wrong = frame.clone();
            let at = wrong.payload.windows(5).position(|window| window == b"\"B\":\"").unwrap() + 5;
            wrong.payload[at] = if wrong.payload[at] == b'9' { b'8' } else { wrong.payload[at] + 1 };
            if top.status.proof.is_verified() {
                assert_eq!(feed.feed(&wrong), Err(DropReason::OracleMismatch));
                assert_eq!(feed.top().status.proof, Proof::Stale);
                tried += 1;
                break;
            }
        }
        let _ = feed.feed(frame);
    }
    assert_eq!(tried, 1);
}
