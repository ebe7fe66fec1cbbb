//! An event as seven words, so that queues of the bench can hold it in relaxed atomics: safe code.

use tt_model::{InstrumentId, IntentFlags, IntentKind, OrderSide, OrderTerms, Price, Qty, TimeInForce};

/// Words of an event.
pub(super) const WORDS: usize = 7;

#[inline(always)]
pub(super) fn packed(terms: &OrderTerms) -> [u64; WORDS] {
    let OrderTerms { ts_ns, client_id, limit_px, qty, trigger_px, account, strategy, instrument, .. } = *terms;
    let OrderTerms { kind, side, tif, flags, ttl_ms, .. } = *terms;
    [
        ts_ns,
        client_id,
        limit_px.0.cast_unsigned(),
        qty.0.cast_unsigned(),
        trigger_px.0.cast_unsigned(),
        u64::from(account) | u64::from(strategy) << 16 | u64::from(instrument.0) << 32,
        u64::from(kind.0)
            | (side as u64) << 8
            | u64::from(tif.0) << 16
            | u64::from(flags.0) << 24
            | u64::from(ttl_ms) << 32,
    ]
}

#[inline(always)]
pub(super) fn unpacked(words: [u64; WORDS]) -> OrderTerms {
    let [ts_ns, client_id, limit_px, qty, trigger_px, parties, way] = words;
    OrderTerms {
        ts_ns,
        client_id,
        limit_px: Price(limit_px.cast_signed()),
        qty: Qty(qty.cast_signed()),
        trigger_px: Price(trigger_px.cast_signed()),
        account: parties as u16,
        strategy: (parties >> 16) as u16,
        instrument: InstrumentId((parties >> 32) as u32),
        kind: IntentKind(way as u8),
        side: if way & 1 << 8 == 0 { OrderSide::Buy } else { OrderSide::Sell },
        tif: TimeInForce((way >> 16) as u8),
        flags: IntentFlags((way >> 24) as u8),
        ttl_ms: (way >> 32) as u32,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{packed, unpacked};
    use tt_model::{InstrumentId, IntentFlags, IntentKind, OrderSide, OrderTerms, Price, Qty, TimeInForce};

    pub(in crate::loops) fn terms(n: u64) -> OrderTerms {
        OrderTerms {
            ts_ns: n,
            client_id: !n,
            limit_px: Price(-(n as i64)),
            qty: Qty(n as i64 + 1),
            trigger_px: Price(3 * n as i64),
            account: n as u16 ^ 0xa5a5,
            strategy: n as u16 ^ 0x5a5a,
            instrument: InstrumentId(n as u32 ^ 0xdead_beef),
            kind: IntentKind(n as u8 ^ 0x3c),
            side: [OrderSide::Buy, OrderSide::Sell][n as usize % 2],
            tif: TimeInForce(n as u8 ^ 0xc3),
            flags: IntentFlags(n as u8),
            ttl_ms: n as u32 ^ 0x1234_5678,
        }
    }

    #[test]
    fn an_event_survives_its_words() {
        (0..1_000).for_each(|n| assert_eq!(unpacked(packed(&terms(n))), terms(n)));
    }
}
