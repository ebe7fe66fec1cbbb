//! The answer of `truetick why`: how much of a latency is the machine's.

mod page;
mod picture;
mod text;

use std::io;

use serde::Serialize;
use tt_status::WHY_FORMAT;

use super::ring::{FloorComparison, Parts};
use super::{Environment, Estimate};

/// What `truetick why` found out.
#[derive(Clone, Debug, Serialize)]
pub struct WhyResult {
    /// Always `why`.
    pub truetick: &'static str,
    /// Few events, wide intervals.
    pub quick: bool,
    /// Resamples of the intervals.
    pub resamples: u32,
    /// Machine, build and disturbance.
    pub environment: Environment,
    /// Reasons for doubt.
    pub warnings: Vec<String>,
    /// CPUs of the producer and the consumer.
    pub cpus: [usize; 2],
    /// The placement that most runs were made in; only those runs count in `p50_ns` and `parts`.
    pub placement: String,
    /// Runs in it.
    pub runs: usize,
    /// The median from the stamp before the push to the stamp after the evaluator, nanoseconds: the sum of the parts, where
    /// there are any.
    pub p50_ns: Estimate,
    /// What that is made of; `None` where the cores did not stay long enough in one placement.
    pub parts: Option<Parts>,
    /// The check that no quantile of the ring lies below one cache line's; `None` where `parts` is.
    pub floor: Option<FloorComparison>,
    /// The distance of the two CPUs, as the kernel knows it; `None` where it does not say.
    pub distance: Option<&'static str>,
    /// The same answer for one pair of CPUs at each other distance.
    pub others: Vec<PairAnswer>,
    /// A new order through the gate that ships, all checks and the journal, on the consumer's CPU, nanoseconds.
    pub gate_ns: Estimate,
    /// Events that took long.
    pub stalls: Stalls,
    /// Changes that were tried, and what they gained.
    pub changes: Vec<Change>,
    /// Settings of the machine that were read only.
    pub advice: Vec<Advice>,
}

/// The answer for another pair of CPUs.
#[derive(Clone, Debug, Serialize)]
pub struct PairAnswer {
    /// CPUs of the producer and the consumer.
    pub cpus: [usize; 2],
    /// Their distance, as the kernel knows it.
    pub distance: &'static str,
    /// The placement that most runs were made in.
    pub placement: String,
    /// Runs in it.
    pub runs: usize,
    /// The median, nanoseconds; `None` where no run got an event through.
    pub p50_ns: Option<Estimate>,
    /// What that is made of.
    pub parts: Option<Parts>,
    /// The check against the floor.
    pub floor: Option<FloorComparison>,
}

/// Events that took longer than a threshold while both threads were watched.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stalls {
    /// The threshold, nanoseconds.
    pub threshold_ns: f64,
    /// How long the threads were watched.
    pub seconds: f64,
    /// Events in that time.
    pub events: u64,
    /// Stalls by name, those without one last.
    pub names: Vec<StallGroup>,
    /// What names them.
    pub source: String,
    /// What would name more of them, and why it was not used.
    pub would_help: Option<String>,
    /// Stalls a second of the two cores when they only spin.
    pub alone_per_s: f64,
    /// Interrupts of both CPUs in that time, most frequent first.
    pub interrupts: Vec<(String, u64)>,
}

/// Stalls of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StallGroup {
    /// What had a core: `local timer`, `thread kworker`; `None` where nothing says it.
    pub name: Option<String>,
    /// How many.
    pub count: u64,
    /// Their time together, nanoseconds.
    pub total_ns: f64,
    /// The longest, nanoseconds.
    pub max_ns: f64,
}

/// Stalls, and the time in which they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StallRate {
    /// How many.
    pub count: u64,
    /// Seconds.
    pub seconds: f64,
}

/// A change, made for some runs and undone.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// What it is, as a thing to do.
    pub what: String,
    /// Nanoseconds that it takes off the median.
    pub p50_gain_ns: Option<Estimate>,
    /// Whether that is no more than two equal settings differ by.
    pub is_none: bool,
    /// Stalls without and with it.
    pub stalls: Option<[StallRate; 2]>,
    /// Why it was not tried.
    pub refused: Option<String>,
}

/// A setting that was read and left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The setting.
    pub setting: String,
    /// What it is now.
    pub now: String,
    /// What could be done.
    pub action: String,
}

impl StallGroup {
    /// Without any stall yet.
    #[must_use]
    pub fn new(name: Option<String>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Both together under this one's name.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            name: self.name.clone(),
            count: self.count + other.count,
            total_ns: self.total_ns + other.total_ns,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

impl StallRate {
    /// Stalls a second; 0 before any time has passed.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.count as f64 / self.seconds } else { 0.0 }
    }

    /// Whether the rates of two are further apart than chance explains: three standard deviations of counts.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        let variance = |rate: &Self| rate.count as f64 / rate.seconds.powi(2).max(f64::MIN_POSITIVE);
        let deviation = (variance(self) + variance(other)).sqrt();
        (self.per_s() - other.per_s()).abs() > 3.0 * deviation && deviation > 0.0
    }
}

impl Advice {
    /// A setting with its value and what to do.
    #[must_use]
    pub fn new(setting: &str, now: &str, action: &str) -> Self {
        Self { setting: setting.to_owned(), now: now.to_owned(), action: action.to_owned() }
    }
}

impl Stalls {
    /// All stalls as one.
    #[must_use]
    pub fn total(&self) -> StallGroup {
        self.names.iter().fold(StallGroup::default(), |sum, one| sum.with(one))
    }

    /// Share of the stalls' time that has a name, 0 to 1; `None` without stalls.
    #[must_use]
    pub fn named_share(&self) -> Option<f64> {
        let total_ns = self.total().total_ns;
        let named: f64 = self.names.iter().filter(|one| one.name.is_some()).map(|one| one.total_ns).sum();
        (total_ns > 0.0).then_some(named / total_ns)
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let total = self.total();
        let over = self.threshold_ns / 1_000.0;
        if self.events == 0 {
            return "Stalls are unknown: the machine was too busy for any watched event.".to_owned();
        }
        let Some(named) = self.named_share() else {
            return format!("No event of {} took more than {over} us.", self.events);
        };
        let most = self.names.iter().find_map(|one| one.name.as_deref());
        let share = 100.0 * total.total_ns / (self.seconds * 1e9);
        let names = most.map_or_else(
            || "none of that time has a name".to_owned(),
            |most| format!("{:.0} % of that time has a name, first of all {most}", 100.0 * named),
        );
        format!(
            "{:.0} events a second took more than {over} us, {share:.1} % of the time; {names}.",
            total.count as f64 / self.seconds
        )
    }
}

impl WhyResult {
    /// The answer in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        sentence(self.cpus, self.p50_ns.value, self.parts.as_ref(), self.floor.as_ref())
    }

    /// One line for each other pair of CPUs, or one that says why there is none.
    #[must_use]
    pub fn placements(&self) -> Vec<String> {
        if !self.others.is_empty() {
            return self.others.iter().map(PairAnswer::sentence).collect();
        }
        let here = self.distance.unwrap_or("unknown").replace('_', " ");
        vec![match self.environment.machine.cores {
            0..=2 => format!("This process has two CPUs, so there is one placement: {here}."),
            _ => format!("All CPUs of this process have one distance, as the kernel knows it: {here}."),
        }]
    }

    /// Every quantile at which the ring lies below the floor, with its CPUs; empty if the check holds.
    #[must_use]
    pub fn below_floor(&self) -> Vec<String> {
        let others = self.others.iter().map(|other| (other.cpus, &other.floor));
        let all = std::iter::once((self.cpus, &self.floor)).chain(others);
        all.filter_map(|([one, other], floor)| Some(format!("{} (CPUs {one} and {other})", floor.as_ref()?.failure()?)))
            .collect()
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let mut json = serde_json::to_value(self).map_err(io::Error::other)?;
        if let Some(object) = json.as_object_mut() {
            object.insert("truetick_why".to_owned(), WHY_FORMAT.into());
            let sentences = [vec![self.sentence()], self.placements(), vec![self.stalls.sentence()]];
            object.insert("answer".to_owned(), sentences.concat().join(" ").into());
        }
        writeln!(to, "{json}")
    }
}

impl PairAnswer {
    fn sentence(&self) -> String {
        let distance = self.distance.replace('_', " ");
        let Some(p50_ns) = &self.p50_ns else {
            let [one, other] = self.cpus;
            return format!("CPU {one} to CPU {other} ({distance}): no event came through.");
        };
        let sentence = sentence(self.cpus, p50_ns.value, self.parts.as_ref(), self.floor.as_ref());
        format!("At another distance ({distance}): {sentence}")
    }
}

/// How much of a median is the distance, the ring and the evaluator.
fn sentence(
    [producer, consumer]: [usize; 2],
    p50: f64,
    parts: Option<&Parts>,
    floor: Option<&FloorComparison>,
) -> String {
    let head = format!("{p50:.0} ns at the median from CPU {producer} to CPU {consumer}");
    let Some(parts) = parts else {
        return format!("{head}; its parts are unknown, because the cores were moved during most rounds.");
    };
    let floor_ns = parts.floor_ns.value;
    if let Some(failure) = floor.and_then(FloorComparison::failure) {
        return format!(
            "{head}; its parts are unknown, because one cache line alone took {floor_ns:.0} ns and is no floor here: the \
             ring lies below it at {failure}."
        );
    }
    let share = 100.0 * floor_ns / p50;
    let line = format!("{share:.0} % is the distance between the cores ({floor_ns:.0} ns for one cache line)");
    let part = |name: &str, [first, second]: [Estimate; 2], chosen: usize| {
        let noise = parts.noise_ns;
        let value = [first, second][chosen].value;
        if !parts.adds_up {
            let (low, high) = (first.value.min(second.value), first.value.max(second.value));
            return format!("{low:.0} to {high:.0} ns the {name}");
        }
        if value.abs() <= noise {
            return format!("the {name} no more than the noise of {noise:.0} ns");
        }
        format!("{value:.0} ns the {name}")
    };
    // In this order the three are the whole: a line, the ring in its place, the evaluator after the ring.
    let ring = part("ring", parts.ring_ns, 0);
    let evaluator = part("evaluator", parts.evaluator_ns, 1);
    let overlap = if parts.adds_up { "" } else { ", which overlap" };
    format!("{head}: {line}, {ring}, {evaluator}{overlap}.")
}

#[cfg(test)]
mod tests;
