//! Whether a connection is still alive, learned from how often it usually speaks.
//!
//! The venue's rules bound how long a connection may be silent; most speak far more often. What is quiet for several
//! times its usual spacing is asked by a ping, which every WebSocket has to answer (RFC 6455 section 5.5.2), and is
//! given up if nothing comes then. Spacing is learned continuously, so that a quiet night makes no alarm.

use std::time::Duration;

/// Messages after which the longest spacing among them becomes what is usual.
const MESSAGES: u32 = 64;
/// A window of messages lasts at least so long: what comes in bursts shows its pauses.
const WINDOW_MIN: Duration = Duration::from_secs(10);
/// What is quiet for so many times the longest usual spacing is asked.
const MULTIPLE: u32 = 4;
/// Nothing is asked before this: a machine that pauses is no venue that died.
const ASK_MIN: Duration = Duration::from_secs(2);
/// An answer may take as long as what led to the question, but at least so long.
const ANSWER_MIN: Duration = Duration::from_secs(3);

/// What to do about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It speaks as usual.
    Alive,
    /// It is to be asked by a ping, once.
    Ask,
    /// It has been silent for so long, and is dead.
    Silent(Duration),
}

/// What is known of one connection. Times are since any fixed moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// The venue's own bound.
    most: Duration,
    /// When the venue last sent a message that is not a response.
    last: Duration,
    /// When it last said or answered anything.
    last_sign: Duration,
    asked: Option<Duration>,
    window_began: Duration,
    messages: u32,
    longest: Duration,
    /// The longest spacing of the window before.
    usual: Option<Duration>,
}

impl Liveness {
    /// A connection that was opened at `now`, to a venue that allows silence of `most`.
    pub(super) const fn new(most: Duration, now: Duration) -> Self {
        let longest = Duration::ZERO;
        Self { most, last: now, last_sign: now, asked: None, window_began: now, messages: 0, longest, usual: None }
    }

    /// The venue said something.
    pub(super) fn heard(&mut self, now: Duration) {
        self.longest = self.longest.max(now.saturating_sub(self.last));
        self.messages = self.messages.saturating_add(1);
        if self.messages >= MESSAGES && now.saturating_sub(self.window_began) >= WINDOW_MIN {
            self.usual = Some(self.longest);
            (self.messages, self.longest, self.window_began) = (0, Duration::ZERO, now);
        }
        self.last = now;
        self.answered(now);
    }

    /// The venue answered a ping. That the line is open is no sign that topics still come: the venue's bound goes on.
    pub(super) fn answered(&mut self, now: Duration) {
        self.last_sign = now;
        self.asked = None;
    }

    /// How long it may be quiet before it is asked; `None` while nothing is learned.
    pub(super) fn ask_after(&self) -> Option<Duration> {
        let usual = self.usual?.max(self.longest);
        Some(usual.saturating_mul(MULTIPLE).max(ASK_MIN).min(self.most))
    }

    /// The state at `now`.
    pub(super) fn look(&mut self, now: Duration) -> Look {
        let silent = now.saturating_sub(self.last);
        if silent > self.most {
            return Look::Silent(silent);
        }
        let Some(ask_after) = self.ask_after() else { return Look::Alive };
        match self.asked {
            Some(asked) if now.saturating_sub(asked) > ask_after.max(ANSWER_MIN) => Look::Silent(silent),
            None if now.saturating_sub(self.last_sign) > ask_after => {
                self.asked = Some(now);
                Look::Ask
            }
            Some(_) | None => Look::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(45);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A connection that has spoken every `spacing` for `seconds`, and when it last did.
    fn spoken(spacing: Duration, seconds: u64) -> (Liveness, Duration) {
        let mut liveness = Liveness::new(MOST, Duration::ZERO);
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(seconds) {
            now += spacing;
            assert_eq!(liveness.look(now), Look::Alive);
            liveness.heard(now);
        }
        (liveness, now)
    }

    /// When a connection that says nothing after `last` is asked, and when it is dead; `answers` are given to each ping.
    fn end_of(liveness: &mut Liveness, last: Duration, answers: bool) -> (Option<Duration>, Duration) {
        let mut asked = None;
        for quiet in (0..).map(|step| ms(50 * step)) {
            match liveness.look(last + quiet) {
                Look::Alive => {}
                Look::Ask => {
                    asked.get_or_insert(quiet);
                    if answers {
                        liveness.answered(last + quiet + ms(1));
                    }
                }
                Look::Silent(silent) => {
                    assert_eq!(silent, quiet);
                    return (asked, quiet);
                }
            }
            assert!(quiet < 2 * MOST, "never given up");
        }
        unreachable!()
    }

    #[test]
    fn what_is_not_learned_yet_has_the_venues_bound() {
        let (mut young, last) = spoken(ms(10), 5);
        assert_eq!(young.ask_after(), None);
        assert_eq!(end_of(&mut young, last, false), (None, MOST + ms(50)));
    }

    #[test]
    fn a_connection_that_spoke_often_is_given_up_soon_and_never_after_the_bound() {
        for (spacing, asked_ms, dead_ms) in [
            // Four times the spacing, but two seconds at least; the answer has three seconds at least.
            (ms(100), 2_050, 5_100),
            (ms(1_000), 4_050, 8_100),
            // Four times nine seconds; the bound comes before the answer's time is over.
            (ms(9_000), 36_050, 45_050),
        ] {
            let (mut liveness, last) = spoken(spacing, 700);
            assert_eq!(end_of(&mut liveness, last, false), (Some(ms(asked_ms)), ms(dead_ms)), "{spacing:?}");
        }
    }

    #[test]
    fn an_answered_ping_keeps_it_until_the_bound() {
        let (mut liveness, last) = spoken(ms(100), 60);
        let (asked, dead) = end_of(&mut liveness, last, true);
        assert_eq!((asked, dead), (Some(ms(2_050)), MOST + ms(50)));
    }

    #[test]
    fn a_quiet_time_is_learned() {
        let (mut liveness, mut now) = spoken(ms(20), 60);
        assert_eq!(liveness.ask_after(), Some(ASK_MIN));
        // The first pause of six seconds is asked about; the next ones are usual.
        now += ms(3_000);
        assert_eq!(liveness.look(now), Look::Ask);
        assert_eq!(liveness.look(now), Look::Alive, "once");
        now += ms(2_900);
        liveness.heard(now);
        assert_eq!(liveness.ask_after(), Some(ms(4 * 5_900)));
        now += ms(20_000);
        assert_eq!(liveness.look(now), Look::Alive);
    }
}
