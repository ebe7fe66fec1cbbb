//! How far this machine's clock can be from the venue's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::Finding;

/// What one answer by HTTP says of the venue's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dated {
    /// This machine's clock when the question left, nanoseconds of the Unix epoch.
    pub(super) asked_ns: i64,
    /// The same when the answer was there.
    pub(super) answered_ns: i64,
    /// The venue's time in whole seconds of the Unix epoch, cut.
    pub(super) date_s: i64,
}

impl Dated {
    /// Reads a `Date` header.
    pub(super) fn new(asked_ns: u64, answered_ns: u64, date: &str) -> Option<Self> {
        let date: SystemTime = httpdate::parse_http_date(date).ok()?;
        let date_s = date.duration_since(UNIX_EPOCH).ok()?.as_secs() as i64;
        Some(Self { asked_ns: asked_ns as i64, answered_ns: answered_ns as i64, date_s })
    }
}

/// A clock that runs ahead by more is wrong: a date has whole seconds, and may be cached for a moment.
const AHEAD_MAX_NS: i64 = 2_000_000_000;

/// An event that seems to arrive more than this before it happened shows a clock that is behind.
const BEHIND_MAX_NS: i64 = 20_000_000;

/// Bounds of this machine's clock minus the venue's: a frame is not received before its event has happened, and
/// a `Date` lies between question and answer.
pub(super) fn bounds(dated: Option<Dated>, lag_least_ns: Option<i64>) -> (Option<i64>, Option<i64>) {
    let second = Duration::from_secs(1).as_nanos() as i64;
    let least = dated.map(|dated| dated.asked_ns - (dated.date_s + 1) * second);
    let most = dated.map(|dated| dated.answered_ns - dated.date_s * second);
    (least, most.into_iter().chain(lag_least_ns).min())
}

/// What the bounds come to.
pub(super) fn judge(least_ns: Option<i64>, most_ns: Option<i64>) -> Finding {
    let shown = |ns: i64| format!("{:+.1} ms", ns as f64 / 1e6);
    let advice = "set it by NTP (`timedatectl set-ntp true`, or chrony): ages and lags are wrong until then";
    let finding = match (least_ns, most_ns) {
        (None, None) => return Finding::skipped("the venue sent no time"),
        (_, Some(most)) if most < -BEHIND_MAX_NS => {
            Finding::failed(format!("this machine's clock is behind the venue's by at least {}", shown(-most)), advice)
        }
        (Some(least), _) if least > AHEAD_MAX_NS => Finding::failed(
            format!("this machine's clock is ahead of the venue's by at least {}", shown(least)),
            advice,
        ),
        (Some(least), Some(most)) => Finding::ok(format!(
            "this machine's clock is between {} and {} from the venue's",
            shown(least),
            shown(most)
        )),
        (None, Some(most)) => {
            Finding::ok(format!("this machine's clock is at most {} ahead of the venue's", shown(most)))
        }
        (Some(least), None) => {
            Finding::ok(format!("this machine's clock is at least {} from the venue's", shown(least)))
        }
    };
    finding.fact("ahead_least_ns", least_ns).fact("ahead_most_ns", most_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A venue whose clock is `behind_ns` behind ours, asked at its second 1,000.4 for 30 ms.
    fn dated(behind_ns: i64) -> Option<Dated> {
        let asked_ns = 1000 * SECOND + 400_000_000 + behind_ns;
        Some(Dated { asked_ns, answered_ns: asked_ns + 30_000_000, date_s: 1000 })
    }

    #[test]
    fn true_skew_lies_within_the_bounds() {
        for skew in [-5 * SECOND, -400_000_000, 0, 3, 700_000_000, 9 * SECOND] {
            // Frames arrive 12 ms after their events.
            let (least, most) = bounds(dated(skew), Some(skew + 12_000_000));
            assert!(least.unwrap() <= skew && skew <= most.unwrap(), "{skew}: {least:?} {most:?}");
            let judged = format!("{:?}", judge(least, most));
            let expected = match skew {
                ..0 => "is behind the venue's",
                0..1_000_000_000 => "is between",
                _ => "is ahead of the venue's",
            };
            assert!(judged.contains(expected), "{skew}: {judged}");
        }
    }

    #[test]
    fn a_date_is_read_as_http_writes_it() {
        let read = Dated::new(5, 6, "Tue, 15 Nov 1994 08:12:31 GMT").unwrap();
        assert_eq!(read, Dated { asked_ns: 5, answered_ns: 6, date_s: 784_887_151 });
        assert_eq!(Dated::new(5, 6, "yesterday"), None);
        assert!(format!("{:?}", judge(None, None)).contains("Skipped"));
    }
}
