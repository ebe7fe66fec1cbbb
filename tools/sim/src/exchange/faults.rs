//! Injected faults of book updates.

use crate::{
    exchange::Exchange,
    instrument::Venue,
    market::{Fault, Topic},
};

/// How long [`Fault::Delay`] holds frames back, in microseconds.
const DELAY_US: u64 = 1_000_000;

impl Exchange {
    /// Sends `frame`, a book update only after what is to go wrong with it.
    pub(super) fn publish_faulty(&mut self, index: usize, topic: Topic, frame: String) {
        if !matches!(topic, Topic::Depth | Topic::Book(_) | Topic::Orders(_)) {
            return self.publish(index, topic, &frame);
        }
        let now_us = self.now_us();
        let market = &mut self.markets[index];
        if let Some((_, held)) = &mut market.held {
            held.push((topic, frame));
            return;
        }
        let late = market.swapped.remove(&topic);
        match if late.is_some() { None } else { market.faults.pop_front() } {
            Some(Fault::Drop) => {}
            Some(Fault::Swap) => {
                market.swapped.insert(topic, frame);
            }
            Some(Fault::Delay) => market.held = Some((now_us + DELAY_US, vec![(topic, frame)])),
            Some(Fault::Duplicate) => {
                self.publish(index, topic, &frame);
                self.publish(index, topic, &frame);
            }
            Some(Fault::FlipDigit) => {
                let frame = flip_quantity(self.venue, &frame);
                self.publish(index, topic, &frame);
            }
            Some(Fault::Checksum) => {
                let frame = flip_last_digit(&frame, after(&frame, 0, "\"checksum\":"));
                self.publish(index, topic, &frame);
            }
            Some(Fault::Truncate) => self.publish(index, topic, &half(&frame)),
            Some(Fault::HalfOpen) => {
                self.publish(index, topic, &frame);
                self.open_by_half(index, topic);
            }
            // Numbering restarted when the step was published.
            Some(Fault::Reset) | None => self.publish(index, topic, &frame),
        }
        if let Some(late) = late {
            self.publish(index, topic, &late);
        }
    }

    /// Sends what was held back for long enough.
    pub(super) fn release_held(&mut self, index: usize) {
        let now_us = self.now_us();
        if self.markets[index].held.as_ref().is_some_and(|(until_us, _)| *until_us <= now_us) {
            let (_, frames) = self.markets[index].held.take().unwrap_or_default();
            frames.iter().for_each(|(topic, frame)| self.publish(index, *topic, frame));
        }
    }

    /// Nothing passes any more through the connections that follow `topic` of an instrument.
    fn open_by_half(&mut self, index: usize, topic: Topic) {
        let subscribers = self.markets[index].subscribers.get(&topic).cloned().unwrap_or_default();
        for subscriber in subscribers {
            if let Some(connection) = self.connections.get_mut(&subscriber.connection) {
                connection.is_half_open = true;
            }
        }
    }
}

/// The first half of `text`.
pub(crate) fn half(text: &str) -> String {
    let middle = text.len() / 2;
    text.char_indices().take_while(|&(at, _)| at < middle).map(|(_, letter)| letter).collect()
}

/// Where the text after the next `mark` begins.
fn after(frame: &str, from: usize, mark: &str) -> Option<usize> {
    frame[from..].find(mark).map(|at| from + at + mark.len())
}

/// `frame` with another last digit in the first quantity that it prints.
fn flip_quantity(venue: Venue, frame: &str) -> String {
    let quantity = match venue {
        // Of single orders one that is placed or changed, else the checksum: a deletion's quantity says nothing.
        Venue::Kraken => after(frame, 0, "\"qty\":")
            .or_else(|| {
                let event = after(frame, 0, "\"event\":\"add\"").or_else(|| after(frame, 0, "\"event\":\"modify\""))?;
                after(frame, event, "\"order_qty\":")
            })
            .or_else(|| after(frame, 0, "\"checksum\":")),
        // Texts in pairs: the price, the quantity.
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Okx | Venue::Bybit => {
            after(frame, 0, "[[\"").and_then(|price| after(frame, price, ",\""))
        }
        // An action, the price, the quantity.
        Venue::Deribit => after(frame, 0, "[[\"")
            .and_then(|action| after(frame, action, ","))
            .and_then(|price| after(frame, price, ",")),
    };
    flip_last_digit(frame, quantity)
}

/// `frame` with another last digit in the number that begins at `from`.
fn flip_last_digit(frame: &str, from: Option<usize>) -> String {
    let Some(from) = from else { return frame.to_owned() };
    let len = frame[from..].find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(0);
    let mut bytes = frame.as_bytes().to_vec();
    if let Some(digit) = bytes[from..from + len].last_mut() {
        *digit = if *digit == b'9' { b'8' } else { *digit + 1 };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| frame.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_digit_of_the_first_quantity_is_another_one() {
        for (venue, frame, flipped) in [
            (Venue::BinanceSpot, r#""b":[["1.5","0.20"],["#, r#""b":[["1.5","0.21"],["#),
            (Venue::Kraken, r#""price":1.5,"qty":0.29}"#, r#""price":1.5,"qty":0.28}"#),
            (
                Venue::Kraken,
                r#"{"event":"delete","order_qty":1.5},{"event":"add","order_qty":2.5}"#,
                r#"{"event":"delete","order_qty":1.5},{"event":"add","order_qty":2.6}"#,
            ),
            (Venue::Okx, r#""asks":[["8477","7","0","2"]]"#, r#""asks":[["8477","8","0","2"]]"#),
            (Venue::Deribit, r#""bids":[["new",42.5,10.0]]"#, r#""bids":[["new",42.5,10.1]]"#),
        ] {
            assert_eq!(flip_quantity(venue, frame), flipped);
        }
        assert_eq!(flip_last_digit(r#"{"checksum":3310070434,"#, Some(12)), r#"{"checksum":3310070435,"#);
        assert_eq!(half("abcde"), "ab");
    }
}
