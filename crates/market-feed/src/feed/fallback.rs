//! Topics that are followed in their second form, because the venue accepts the first and never sends it.

use std::time::Instant;

use super::connection::Connection;
use crate::topics::{Refusal, topic_name};

impl Connection<'_> {
    /// Looks for a topic that does not come. Its second form is followed on connections that take over, so that books lose
    /// nothing.
    pub(super) fn fall_back(&mut self, now: Instant) {
        if self.succession.is_under_way() {
            return;
        }
        let most = self.feed.config.timing.fall_back_after;
        let Some(topic) = self.links.iter().find_map(|link| link.arrivals.failing(now, most)) else { return };
        let Some(second) = topic.fallback else { return };
        let (venue, subject) = (self.feed.config.venue.name(), topic_name(topic.kind).to_owned());
        let plain = |text: &str| text.replace('"', "").replace("{lower}", "").replace("{symbol}", "");
        let (first, second) = (plain(topic.text), plain(second.text));
        let reason = format!("{first} is accepted and never sent: {second} is followed instead");
        tracing::warn!(venue, subject, reason, "market: accepted_but_silent");
        self.feed.status.refuse(Refusal { subject, reason });
        self.feed.config.fall_back.push(topic.kind);
        self.open_successors();
    }
}
