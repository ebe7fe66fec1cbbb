//! The limits behind reasons that count messages or compare times, in words.

use tt_model::{Breach, InstrumentId};
use tt_risk::Rate;
use tt_risk::tree::Node;

use super::LimitsFile;

impl LimitsFile {
    /// Returns the limit behind `reason` in force at `now_ns`: of `node`, or else of the instrument or of all. `None` for a
    /// reason without such a limit.
    #[must_use]
    pub fn limit_words(
        &self,
        now_ns: u64,
        reason: Breach,
        (node, instrument): (Option<Node>, InstrumentId),
    ) -> Option<String> {
        let settings = self.settings_at(now_ns);
        let rules = &settings.rules;
        let market = || settings.markets.get(instrument.0 as usize);
        let of_node = |node| settings.nodes.iter().find(|(of, _)| *of == node).map(|(_, limits)| limits);
        let rate = |rate: Rate| format!("{} per second, {} at once", rate.per_second, rate.burst);
        let within = |count: u32, window_ns: u64| format!("{count} within {} ms", window_ns / 1_000_000);
        let ratio = |pct: u32| format!("{}.{:02} per fill", pct / 100, pct % 100);
        Some(match (reason, node) {
            (Breach::RATE_GLOBAL, _) => rate(settings.global_rate),
            (Breach::RATE_INSTRUMENT, _) => rate(market()?.limits.rate),
            (Breach::RATE_ACCOUNT, Some(Node::Account(account))) => {
                rate(settings.account_rates.iter().find(|(of, _)| *of == account)?.1)
            }
            (Breach::RATE_ACCOUNT, Some(Node::Strategy { account, strategy })) => {
                let mut rates = settings.strategy_rates.iter();
                rate(rates.find(|(of, name, _)| (*of, *name) == (account, strategy))?.2)
            }
            (Breach::CANCEL_RATIO, Some(node)) => ratio(of_node(node)?.cancels_per_fill_max_pct?),
            (Breach::CANCEL_RATIO, None) => ratio(market()?.rules.cancels_per_fill_max_pct?),
            (Breach::REPEAT_EXEC, Some(node)) => within(of_node(node)?.executions_stop?, rules.exec_window_ns),
            (Breach::DUP_ORDER, _) => within(rules.same_orders_max, rules.same_window_ns),
            (Breach::EXPIRED, _) => format!("{} ms", rules.intent_age_max_ns / 1_000_000),
            _ => return None,
        })
    }
}
