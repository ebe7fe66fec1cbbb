//! The words of events, by the numbers of the model.

use tt_model::ReportKind;

/// The words for kinds of intents, by number. Another word is a byte that the gate rejects.
pub const INTENT_KINDS: [&str; 6] = ["limit", "market", "cancel", "replace", "stop_market", "stop_limit"];
/// The words for times in force, by number.
pub(super) const TIFS: [&str; 3] = ["good_till_cancel", "immediate_or_cancel", "fill_or_kill"];
/// The words for kinds of reports, by number. Another word is a byte that the gate rejects.
pub const REPORT_KINDS: [&str; 12] = [
    "ack",
    "fill",
    "cancelled",
    "rejected",
    "expired",
    "unsent",
    "bust",
    "correct",
    "cancel_rejected",
    "replace_rejected",
    "replaced",
    "restated",
];

/// Returns the number of `word`: 0 for none, 255 for one that is not in `words`.
pub(super) fn number_of(word: &str, words: &[&str]) -> u8 {
    if word.is_empty() {
        return 0;
    }
    words.iter().position(|known| *known == word).map_or(u8::MAX, |index| index as u8)
}

/// Returns the kind that `word` names; an unknown one for none.
pub(super) fn report_kind(word: &str) -> ReportKind {
    ReportKind(if word.is_empty() { u8::MAX } else { number_of(word, &REPORT_KINDS) })
}
