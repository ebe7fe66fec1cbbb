//! Frames as a JSON library sees them, numbers left as texts.

use anyhow::Context as _;
use serde::Deserialize;

/// Decimals of Binance's prices and quantities of BTCUSDT perpetuals, as they stand in its texts.
pub(crate) const PX_DECIMALS: usize = 2;
pub(crate) const QTY_DECIMALS: usize = 3;
/// Hundredths in a price step.
pub(crate) const PX_PER_STEP: i64 = 10;

/// `{"stream":..,"data":..}`.
#[derive(Deserialize)]
pub(crate) struct Wrapped<T> {
    pub(crate) data: T,
}

/// `depthUpdate`.
#[derive(Deserialize)]
pub(crate) struct Depth<'a> {
    /// The last update id in it.
    pub(crate) u: u64,
    /// The last update id of the frame before.
    pub(crate) pu: u64,
    #[serde(borrow)]
    pub(crate) b: Vec<[&'a str; 2]>,
    #[serde(borrow)]
    pub(crate) a: Vec<[&'a str; 2]>,
}

/// The body of a REST snapshot.
#[derive(Deserialize)]
pub(crate) struct Body<'a> {
    #[serde(rename = "lastUpdateId")]
    pub(crate) last_update_id: u64,
    #[serde(borrow)]
    pub(crate) bids: Vec<[&'a str; 2]>,
    #[serde(borrow)]
    pub(crate) asks: Vec<[&'a str; 2]>,
}

/// What is said of both sides: price and quantity in the last place of their texts, a quantity of zero deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) last_id: u64,
    pub(crate) before_id: u64,
    pub(crate) bids: Vec<(i64, i64)>,
    pub(crate) asks: Vec<(i64, i64)>,
}

impl Levels {
    pub(crate) fn of_frame(frame: &[u8]) -> anyhow::Result<Self> {
        let Wrapped { data } = serde_json::from_slice::<Wrapped<Depth<'_>>>(frame).context("no depth frame")?;
        Ok(Self { last_id: data.u, before_id: data.pu, bids: numbers(&data.b)?, asks: numbers(&data.a)? })
    }

    pub(crate) fn of_body(body: &[u8]) -> anyhow::Result<Self> {
        let body = serde_json::from_slice::<Body<'_>>(body).context("no snapshot")?;
        let last_id = body.last_update_id;
        Ok(Self { last_id, before_id: 0, bids: numbers(&body.bids)?, asks: numbers(&body.asks)? })
    }

    /// Whether it can be a book: the best level of a side first, no price twice and each in whole steps, no level
    /// without a quantity.
    pub(crate) fn is_snapshot(&self) -> bool {
        let is_level = |(px, qty): &(i64, i64)| *px > 0 && px % PX_PER_STEP == 0 && *qty > 0;
        self.bids.is_sorted_by(|one, next| one.0 > next.0)
            && self.asks.is_sorted_by(|one, next| one.0 < next.0)
            && self.bids.iter().chain(&self.asks).all(is_level)
    }

    pub(crate) fn len(&self) -> usize {
        self.bids.len() + self.asks.len()
    }
}

fn numbers(levels: &[[&str; 2]]) -> anyhow::Result<Vec<(i64, i64)>> {
    levels.iter().map(|level| level_of(level).context("no number")).collect()
}

/// A level's texts as numbers; `None` where they have other decimals or are none.
#[inline]
pub(crate) fn level_of([px, qty]: &[&str; 2]) -> Option<(i64, i64)> {
    Some((fixed(px, PX_DECIMALS)?, fixed(qty, QTY_DECIMALS)?))
}

/// The digits of a decimal that has exactly `decimals` places.
#[inline]
pub(crate) fn fixed(text: &str, decimals: usize) -> Option<i64> {
    let bytes = text.as_bytes();
    let point = bytes.len().checked_sub(decimals + 1)?;
    let mut number = 0_i64;
    for (at, byte) in bytes.iter().enumerate() {
        if at == point {
            if *byte != b'.' {
                return None;
            }
        } else {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::{Levels, fixed};

    #[test]
    fn a_decimal_has_its_places_or_is_none() {
        assert_eq!(fixed("61837.10", 2), Some(6_183_710));
        assert_eq!(fixed("0.001", 3), Some(1));
        assert_eq!(fixed("61837.1", 2), None);
        assert_eq!(fixed("61x37.10", 2), None);
        assert_eq!(fixed("", 2), None);
    }

    #[test]
    fn a_snapshot_is_in_order_and_on_steps() {
        let levels = |bids: &[(i64, i64)], asks: &[(i64, i64)]| Levels {
            bids: bids.into(),
            asks: asks.into(),
            ..Levels::default()
        };
        assert!(levels(&[(90, 1), (80, 2)], &[(100, 1), (110, 2)]).is_snapshot());
        for wrong in [
            levels(&[(90, 1), (90, 2)], &[]),
            levels(&[], &[(110, 1), (100, 2)]),
            levels(&[(91, 1)], &[]),
            levels(&[(90, 0)], &[]),
        ] {
            assert!(!wrong.is_snapshot(), "{wrong:?}");
        }
    }

    #[test]
    fn a_frame_is_both_sides_and_its_place_in_the_chain() {
        let frame = br#"{"stream":"s","data":{"e":"depthUpdate","U":3,"u":5,"pu":2,"b":[["1.50","0.010"]],"a":[]}}"#;
        let levels = Levels { last_id: 5, before_id: 2, bids: vec![(150, 10)], asks: vec![] };
        assert_eq!(Levels::of_frame(frame).unwrap_or_default(), levels);
    }
}
