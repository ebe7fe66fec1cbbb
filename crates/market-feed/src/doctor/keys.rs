//! Keys of frames that the venue does not document: its interface has changed.

use serde_json::Value;
use tt_venue::Venue;

/// Returns the first key of `frame` that the venue does not document.
pub(super) fn unknown(venue: Venue, frame: &Value) -> Option<&str> {
    match frame {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let is_known = venue.rules().documented_keys.contains(&key.as_str());
            if is_known { unknown(venue, value) } else { Some(key.as_str()) }
        }),
        Value::Array(elements) => elements.iter().find_map(|element| unknown(venue, element)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_found_however_deep_it_lies() {
        let frame = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let level = r#"{"channel":"book","type":"update","data":[{"symbol":"BTC/USD","bids":[{"price":1.5,"qty":2,"orders":3}]}]}"#;
        assert_eq!(unknown(Venue::Kraken, &frame(level)), Some("orders"));
        assert_eq!(unknown(Venue::Kraken, &frame(&level.replace(",\"orders\":3", ""))), None);
    }

    /// Frames of the venues themselves hold none.
    #[test]
    fn captured_frames_have_no_unknown_key() {
        let Some(folder) = testkit::require_captures() else { return };
        for (venue, file) in [
            (Venue::CoinbaseExchange, "coinbase/exchange_2021.ws"),
            (Venue::Deribit, "deribit/deribit.ws"),
            (Venue::Okx, "okx/okx_2022.ws"),
            (Venue::Kraken, "kraken/v2_btcusd_depth25.cbcap"),
        ] {
            let text = String::from_utf8_lossy(&std::fs::read(folder.join(file)).unwrap()).into_owned();
            let mut frames = 0;
            // Text that the client sent follows an arrow.
            for line in text.lines().filter(|line| !line.contains("<-")) {
                let Some(frame) = line.find('{').and_then(|at| serde_json::from_str(&line[at..]).ok()) else {
                    continue;
                };
                assert_eq!(unknown(venue, &frame), None, "{line}");
                frames += 1;
            }
            assert!(frames > 100, "{file}: {frames}");
        }
    }
}
