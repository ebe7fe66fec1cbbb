//! Watches the thread that it is on for stalls, and asks the kernel for the cause of each right after it.

use super::{Evidence, Stall, StallCause, Witness, speed};
use core::marker::PhantomData;
use nix::errno::Errno;
use tt_meter::{Clock, Scale, Stamp};
use tt_model::{sort_short_by, sort_short_by_key};
use tt_os::cpu_times::CpuTimes;
use tt_os::interrupts::Interrupts;
use tt_os::machine::Machine;
use tt_os::thread::{ThreadCounter, ThreadCounts};

/// The thread's counters are read this often without a stall: the clock of the CPU time and ours drift apart.
const REFRESH_NS: u64 = 2_000_000;
/// At most one part in so many of the time goes to reading interrupts; beyond it several stalls share one reading.
const READING_SHARE: u64 = 5;
/// A reading of the interrupts that took this much longer than the quickest one was itself interrupted, nanoseconds.
const DISTURBED_NS: u64 = 2_000;
/// How often a disturbed reading is repeated.
const REREADS: u32 = 3;

/// Parameters of a watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchPlan {
    /// The CPU that the thread is pinned to.
    pub cpu: usize,
    /// Gaps longer than this are stalls, nanoseconds.
    pub threshold_ns: u64,
    /// Stalls that are kept one by one; those beyond count in the totals only.
    pub stalls_max: usize,
}

/// Result of a watch.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// The CPU.
    pub cpu: usize,
    /// Gaps longer than this are stalls, nanoseconds.
    pub threshold_ns: u64,
    /// The stamp that `at_ns` of each stall counts from.
    pub start: Stamp,
    /// Nanoseconds from the first stamp to the last.
    pub span_ns: u64,
    /// Of these, nanoseconds in which the kernel was asked: interrupts during them are not seen, and preemption and steal
    /// count from when the asking began.
    pub asking_ns: u64,
    /// The stalls in order.
    pub stalls: Vec<Stall>,
    /// Stalls that there was no room for.
    pub unkept: u64,
    /// Count and nanoseconds of each cause, those without room included, in the order of [`StallCause::ALL`].
    pub totals: [(u64, u64); 6],
    /// Interrupts of the CPU by name, those of the time spent asking included, most frequent first.
    pub interrupts: Vec<(String, u64)>,
    /// The CPU's time while the watch lasted; `None` where the kernel does not report it.
    pub cpu_times: Option<CpuTimes>,
    /// Sources of evidence on this machine.
    pub witness: Witness,
}

impl Jitter {
    /// Count and nanoseconds of `cause`.
    #[must_use]
    pub fn total(&self, cause: StallCause) -> (u64, u64) {
        self.totals[cause.index()]
    }

    /// How many stalls there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.totals.iter().map(|(count, _)| count).sum()
    }
}

/// It receives every moment at which the thread ran ([`observe`](Self::observe)) and finds the gaps between them. For the thread
/// that made it, which must stay on its CPU.
#[derive(Debug)]
pub struct StallWatch {
    plan: WatchPlan,
    clock: Clock,
    scale: Scale,
    threshold: u64,
    refresh: u64,
    start: Stamp,
    last: Stamp,
    baseline: Stamp,
    counter: ThreadCounter,
    counts: ThreadCounts,
    speed: u64,
    interrupts: Option<InterruptReader>,
    named: Vec<(String, u64)>,
    cpu_times: Option<CpuTimes>,
    witness: Witness,
    stalls: Vec<Stall>,
    undecided: Vec<(Stall, Evidence)>,
    /// Stalls decided since the interrupts were read last: at least one interrupt each is theirs.
    decided: u64,
    unkept: u64,
    totals: [(u64, u64); 6],
    asking: u64,
    _not_send: PhantomData<*const ()>,
}

impl StallWatch {
    /// On the calling thread, which runs on `plan.cpu` and is to stay there.
    ///
    /// # Errors
    /// `EXDEV` if the thread is on another CPU.
    pub fn new(plan: WatchPlan, clock: Clock, scale: Scale) -> Result<Self, Errno> {
        if tt_os::cpu::current()? != plan.cpu {
            return Err(Errno::EXDEV);
        }
        let mut interrupts = InterruptReader::open(plan.cpu, clock, scale);
        let named = interrupts.as_mut().map(InterruptReader::named).unwrap_or_default();
        let cycles_per_ns = scale.cycles_per_s() / 1e9;
        let cpu_times = CpuTimes::read(plan.cpu);
        let hypervisor = Machine::read().hypervisor;
        let witness = Witness {
            interrupts: interrupts.is_some(),
            steal: hypervisor && cpu_times.is_some_and(|times| times.steal > 0),
            interrupt_time: cpu_times.is_some_and(|times| times.interrupts > 0),
            frequency: !hypervisor,
        };
        let counter = ThreadCounter::open();
        let counts = counter.read();
        let now = clock.end();
        let mut watch = Self {
            plan,
            clock,
            scale,
            threshold: (plan.threshold_ns as f64 * cycles_per_ns) as u64,
            refresh: (REFRESH_NS as f64 * cycles_per_ns) as u64,
            start: now,
            last: now,
            baseline: now,
            counter,
            counts,
            speed: speed::probe(clock),
            interrupts,
            named,
            cpu_times,
            witness,
            stalls: Vec::with_capacity(plan.stalls_max),
            undecided: Vec::with_capacity(64),
            decided: 0,
            unkept: 0,
            totals: [(0, 0); 6],
            asking: 0,
            _not_send: PhantomData,
        };
        watch.read_interrupts();
        watch.resume();
        watch.start = watch.last;
        watch.asking = 0;
        Ok(watch)
    }

    /// The thread runs at `now`. If it did not for longer than the threshold, the cause is looked for, which takes some ten
    /// microseconds; interrupts meanwhile are not seen. Returns whether it was a stall.
    #[inline]
    pub fn observe(&mut self, now: Stamp) -> bool {
        let gap = now.since(self.last);
        if gap > self.threshold {
            self.stall(self.last, now);
            return true;
        }
        self.last = now;
        if now.since(self.baseline) > self.refresh {
            self.renew(now);
        }
        false
    }

    /// Goes on from now: what the thread did since the last [`observe`](Self::observe) was meant, and is no stall.
    pub fn resume(&mut self) {
        let (_, asked) = self.ask(0);
        self.go_on(asked);
    }

    /// The stamp of the last moment at which the thread is known to have run.
    #[must_use]
    pub const fn last(&self) -> Stamp {
        self.last
    }

    /// Returns the result.
    #[must_use]
    pub fn finish(mut self) -> Jitter {
        let end = self.clock.end();
        self.read_interrupts();
        let mut interrupts = self.interrupts.as_mut().map(InterruptReader::named).unwrap_or_default();
        for (name, count) in &mut interrupts {
            let before = self.named.iter().find(|(before, _)| before == name).map_or(0, |(_, count)| *count);
            *count = count.saturating_sub(before);
        }
        interrupts.retain(|(_, count)| *count > 0);
        sort_short_by(&mut interrupts, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sort_short_by_key(&mut self.stalls, |stall| stall.at_ns);
        Jitter {
            cpu: self.plan.cpu,
            threshold_ns: self.plan.threshold_ns,
            start: self.start,
            span_ns: self.scale.ns(end.since(self.start)),
            asking_ns: self.scale.ns(self.asking),
            stalls: self.stalls,
            unkept: self.unkept,
            totals: self.totals,
            interrupts,
            cpu_times: CpuTimes::read(self.plan.cpu).zip(self.cpu_times).map(|(now, then)| now.since(&then)),
            witness: self.witness,
        }
    }

    #[cold]
    #[inline(never)]
    fn stall(&mut self, from: Stamp, to: Stamp) {
        let (mut evidence, asked) = self.ask(to.since(from));
        let speed = speed::probe(self.clock);
        evidence.speed_ratio = self.speed as f64 / speed as f64;
        self.speed = speed;
        let stall = self.stall_of(from, evidence.length_ns);
        match evidence.cause(self.witness) {
            Some(cause) => {
                self.decided += 1;
                self.keep(Stall { cause, ..stall });
            }
            None => self.undecided.push((stall, evidence)),
        }
        // What kept the thread while it was reading is no cost of reading.
        let spent = self.interrupts.as_ref().map_or(0, |reader| reader.quickest * reader.readings);
        let is_cheap = spent * READING_SHARE <= to.since(self.start);
        if is_cheap || self.undecided.len() == self.undecided.capacity() {
            self.read_interrupts();
        }
        self.renew(asked);
    }

    /// Returns the kernel's counts since the baseline, and sets the baseline to now.
    fn ask(&mut self, length: u64) -> (Evidence, Stamp) {
        let asked = self.clock.end();
        let wall_ns = self.scale.ns(asked.since(self.baseline));
        let counts = self.counter.read();
        let added = counts.since(&self.counts);
        self.counts = counts;
        self.baseline = asked;
        let evidence = Evidence {
            length_ns: self.scale.ns(length),
            off_cpu_ns: wall_ns.saturating_sub(added.cpu_ns),
            waited_ns: added.waited_ns,
            switches: added.switches_involuntary + added.switches_voluntary,
            faults: added.faults,
            interrupts: None,
            speed_ratio: 1.0,
        };
        (evidence, asked)
    }

    fn stall_of(&self, from: Stamp, length_ns: u64) -> Stall {
        let at_ns = self.scale.ns(from.since(self.start));
        Stall { at_ns, length_ns, cpu: self.plan.cpu, cause: StallCause::Unknown }
    }

    fn keep(&mut self, stall: Stall) {
        let total = &mut self.totals[stall.cause.index()];
        total.0 += 1;
        total.1 += stall.length_ns;
        if self.stalls.len() < self.stalls.capacity() {
            self.stalls.push(stall);
        } else {
            self.unkept += 1;
        }
    }

    /// Reads the interrupts and decides what hangs on them: all that is undecided had one if there were as many as that.
    fn read_interrupts(&mut self) {
        let added = self.interrupts.as_mut().map_or(0, InterruptReader::added);
        let theirs = added.saturating_sub(if self.undecided.is_empty() { 0 } else { self.decided });
        let interrupts = theirs / (self.undecided.len() as u64).max(1);
        self.decided = 0;
        while let Some((stall, evidence)) = self.undecided.pop() {
            let cause = Evidence { interrupts: Some(interrupts), ..evidence }.cause(self.witness);
            self.keep(Stall { cause: cause.unwrap_or(StallCause::Unknown), ..stall });
        }
    }

    /// Reads the counters, and returns the moment from which the next gap counts. What kept the thread from its CPU meanwhile, `asked`
    /// being when that began, shows in the counts alone.
    fn renew(&mut self, asked: Stamp) {
        let (mut evidence, _) = self.ask(0);
        evidence.length_ns = evidence.off_cpu_ns;
        if evidence.length_ns > self.plan.threshold_ns
            && let Some(cause @ (StallCause::Preemption | StallCause::Steal)) = evidence.cause(self.witness)
        {
            let stall = self.stall_of(asked, evidence.length_ns);
            self.keep(Stall { cause, ..stall });
        }
        self.go_on(asked);
    }

    fn go_on(&mut self, asked: Stamp) {
        self.last = self.clock.end();
        self.asking += self.last.since(asked);
    }
}

#[derive(Debug)]
struct InterruptReader {
    interrupts: Interrupts,
    clock: Clock,
    total: u64,
    quickest: u64,
    disturbed: u64,
    readings: u64,
}

impl InterruptReader {
    fn open(cpu: usize, clock: Clock, scale: Scale) -> Option<Self> {
        let disturbed = (DISTURBED_NS as f64 * scale.cycles_per_s() / 1e9) as u64;
        let interrupts = Interrupts::open(cpu).ok()?;
        let mut reader = Self { interrupts, clock, total: 0, quickest: u64::MAX, disturbed, readings: 0 };
        for _ in 0..8 {
            reader.timed()?;
        }
        reader.readings = 0;
        Some(reader)
    }

    fn named(&mut self) -> Vec<(String, u64)> {
        self.interrupts.named().unwrap_or_default()
    }

    /// Interrupts since the last reading. One that came after its line was read would count for the next stall: a reading
    /// that was disturbed is repeated.
    fn added(&mut self) -> u64 {
        let before = self.total;
        for _ in 0..=REREADS {
            match self.timed() {
                Some(took) if took > self.quickest + self.disturbed => {}
                Some(_) | None => break,
            }
        }
        self.total.saturating_sub(before)
    }

    fn timed(&mut self) -> Option<u64> {
        let start = self.clock.end();
        self.total = self.interrupts.total().ok()?;
        let took = self.clock.end().since(start);
        self.quickest = self.quickest.min(took);
        self.readings += 1;
        Some(took)
    }
}
