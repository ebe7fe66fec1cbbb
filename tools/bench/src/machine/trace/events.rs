//! The text of a trace, read into stretches in which something else had a CPU.

use std::collections::BTreeMap;

/// A stretch in which a CPU served something other than this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The CPU.
    pub cpu: usize,
    /// Its begin in cycles of the TSC.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// What had the CPU: `local timer`, `interrupt of eth0`, `thread kworker`.
    pub name: String,
}

/// What is known of a CPU so far.
#[derive(Debug, Default)]
struct Cpu {
    /// Interrupts that have begun, the innermost last.
    interrupts: Vec<(String, u64)>,
    /// The other thread that runs.
    thread: Option<(String, u64)>,
}

/// Reads all stretches of `text`; threads called `own` are this process's. Returns whether no event is missing.
pub(super) fn read(text: &str, own: &str, cycles_per_ns: f64) -> (Vec<Busy>, bool) {
    let mut cpus: BTreeMap<usize, Cpu> = BTreeMap::new();
    let mut busy = Vec::new();
    let mut noise = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(event) = Event::of(line) else { continue };
        if event.name.ends_with("_noise") {
            noise.extend(event.noise(own, cycles_per_ns));
            continue;
        }
        let cpu = cpus.entry(event.cpu).or_default();
        busy.extend(cpu.take(&event, own));
    }
    // Both tracers have most stretches: one of the same name at the same time is the same.
    let is_there = |noise: &Busy| {
        let is_same = |busy: &&Busy| busy.cpu == noise.cpu && busy.name == noise.name;
        busy.iter().filter(is_same).any(|busy| busy.from <= noise.to && noise.from <= busy.to)
    };
    noise.retain(|noise| !is_there(noise));
    busy.extend(noise);
    (busy, !text.contains("LOST") && is_whole(text))
}

/// Compares the two numbers of `# entries-in-buffer/entries-written: 719/719   #P:2`.
fn is_whole(text: &str) -> bool {
    let counts = text.lines().find_map(|line| line.strip_prefix("# entries-in-buffer/entries-written: "));
    let counts = counts.and_then(|counts| counts.split_whitespace().next()?.split_once('/'));
    counts.is_none_or(|(kept, written)| kept == written)
}

/// A line: `bash-14005   [001] .Ns1. 1166481629023: softirq_entry: vec=9 [action=RCU]`.
#[derive(Debug)]
struct Event<'a> {
    cpu: usize,
    at: u64,
    name: &'a str,
    details: &'a str,
}

impl<'a> Event<'a> {
    fn of(line: &'a str) -> Option<Self> {
        // A thread's name may have brackets, too: the CPU is the first number between them.
        let number = |part: &&'a str| part.split_once("] ").is_some_and(|(cpu, _)| cpu.parse::<usize>().is_ok());
        let (cpu, rest) = line.split('[').skip(1).find(number)?.split_once("] ").and_then(|(cpu, _)| {
            let start = line.find(&format!("[{cpu}] "))? + cpu.len() + 3;
            Some((cpu.parse().ok()?, line.get(start..)?))
        })?;
        let (_flags, rest) = rest.trim_start().split_once(' ')?;
        let (at, rest) = rest.trim_start().split_once(": ")?;
        let (name, details) = rest.split_once(':')?;
        Some(Self { cpu, at: at.parse().ok()?, name, details: details.trim_start() })
    }

    fn detail(&self, key: &str) -> Option<&'a str> {
        let (_, rest) = self.details.split_once(key)?;
        Some(rest)
    }

    /// A stretch that the tracer osnoise reports at its end: `irq_noise: local_timer:236 start 5789.857529929 duration
    /// 1845 ns`.
    fn noise(&self, own: &str, cycles_per_ns: f64) -> Option<Busy> {
        let (what, _) = self.details.split_once("start ")?;
        let ns: f64 = self.detail(" duration ")?.split(' ').next()?.parse().ok()?;
        let what = what.trim_end().rsplit_once(':').map_or(what, |(what, _number)| what).trim();
        let name = match self.name {
            "irq_noise" => own_interrupt(what).unwrap_or_else(|| {
                let is_vector = what.ends_with("_apic") || what.ends_with("_ipi");
                if is_vector { format!("vector {what}") } else { format!("interrupt of {what}") }
            }),
            "softirq_noise" => format!("soft interrupt {what}"),
            "thread_noise" if what == own || what.starts_with("swapper/") => return None,
            "thread_noise" => format!("thread {}", family(what)),
            "nmi_noise" => "non-maskable interrupt".to_owned(),
            _ => return None,
        };
        let from = self.at.saturating_sub((ns * cycles_per_ns) as u64);
        Some(Busy { cpu: self.cpu, from, to: self.at, name })
    }

    /// What an interrupt that begins is called, and one that ends.
    fn interrupt(&self) -> Option<String> {
        match self.name.strip_suffix("_entry").or_else(|| self.name.strip_suffix("_exit"))? {
            "irq_handler" => {
                let name = self.detail("name=").map_or("a device", |name| name.trim_end());
                Some(format!("interrupt of {name}"))
            }
            "softirq" => {
                let action = self.detail("[action=").and_then(|action| action.split_once(']'));
                Some(format!("soft interrupt {}", action.map_or("of unknown kind", |(action, _)| action)))
            }
            other => own_interrupt(other).or_else(|| Some(format!("vector {other}"))),
        }
    }
}

impl Cpu {
    fn take(&mut self, event: &Event<'_>, own: &str) -> Option<Busy> {
        let Event { cpu, at, name, .. } = *event;
        if name == "sched_switch" {
            let next = event.detail(" next_comm=").and_then(|rest| rest.rsplit_once(" next_pid="))?.0;
            let is_other = next != own && !next.starts_with("swapper/");
            let begun = is_other.then(|| (format!("thread {}", family(next)), at));
            let ended = std::mem::replace(&mut self.thread, begun);
            return ended.map(|(name, from)| Busy { cpu, from, to: at, name });
        }
        if name.ends_with("_entry") {
            self.interrupts.push((event.interrupt()?, at));
            return None;
        }
        if !name.ends_with("_exit") {
            return None;
        }
        // The end of irq_handler says no name: the innermost of its kind ends.
        let ends = event.interrupt()?;
        let kind = if name == "irq_handler_exit" { "interrupt of " } else { &ends };
        let index = self.interrupts.iter().rposition(|(begun, _)| begun.starts_with(kind))?;
        let (name, from) = self.interrupts.remove(index);
        Some(Busy { cpu, from, to: at, name })
    }
}

/// What an interrupt of the CPU's own is called, where it has a better name than its vector's.
fn own_interrupt(vector: &str) -> Option<String> {
    let name = match vector {
        "local_timer" => "local timer",
        "reschedule" => "request to reschedule",
        "call_function" | "call_function_single" => "call from another CPU",
        "irq_work" => "deferred work of the kernel",
        _ => return None,
    };
    Some(name.to_owned())
}

/// What a thread's name says without its number: `kworker/1:2-events` and `ksoftirqd/0` are one thread each for a CPU,
/// `rayon-7` one of a pool.
fn family(thread: &str) -> &str {
    let name = thread.split_once('/').map_or(thread, |(name, _)| name);
    let family = name.trim_end_matches(|last: char| last.is_ascii_digit() || last.is_ascii_punctuation());
    if family.is_empty() { name } else { family }
}

#[cfg(test)]
mod tests {
    use super::{Busy, Event, read};

    /// Lines of a 6.18 kernel, shortened to what is read.
    const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 9/9   #P:2
#
        truetick-77      [000] d.h.. 1000: local_timer_entry: vector=236
        truetick-77      [000] .Ns.. 1100: softirq_entry: vec=1 [action=TIMER]
        truetick-77      [000] .Ns.. 1200: softirq_exit: vec=1 [action=TIMER]
        truetick-77      [000] d.h.. 1300: local_timer_exit: vector=236
        truetick-78      [001] d.h.. 2000: irq_handler_entry: irq=25 name=virtio0-input.0
        truetick-78      [001] d.h.. 2500: irq_handler_exit: irq=25 ret=handled
        truetick-78      [001] d..2. 3000: sched_switch: prev_comm=truetick prev_pid=78 prev_prio=120 prev_state=R ==> \
next_comm=kworker/1:2 next_pid=9 next_prio=120
     kworker/1:2-9       [001] d..2. 3900: sched_switch: prev_comm=kworker/1:2 prev_pid=9 prev_prio=120 prev_state=I ==> \
next_comm=truetick next_pid=78 next_prio=120
     a [0 b] c-5         [001] d..2. 5000: sched_switch: prev_comm=truetick prev_pid=78 prev_prio=120 prev_state=S ==> \
next_comm=swapper/1 next_pid=0 next_prio=120
";

    fn busy(cpu: usize, from: u64, to: u64, name: &str) -> Busy {
        Busy { cpu, from, to, name: name.to_owned() }
    }

    #[test]
    fn every_stretch_has_its_name() {
        let expected = vec![
            busy(0, 1100, 1200, "soft interrupt TIMER"),
            busy(0, 1000, 1300, "local timer"),
            busy(1, 2000, 2500, "interrupt of virtio0-input.0"),
            busy(1, 3000, 3900, "thread kworker"),
        ];
        assert_eq!(read(TRACE, "truetick", 1.0), (expected, true));
    }

    #[test]
    fn a_buffer_that_wrapped_is_said_so() {
        let (_, is_whole) = read(&TRACE.replace("9/9", "9/12"), "truetick", 1.0);
        assert!(!is_whole);
        let (_, is_whole) = read(&format!("{TRACE}CPU:1 [LOST 5 EVENTS]\n"), "truetick", 1.0);
        assert!(!is_whole);
    }

    #[test]
    fn threads_of_a_pool_have_one_name() {
        let names = ["kworker/1:2-events", "rayon-7", "opt cgu.05", "ksoftirqd/0", "42", "sshd"].map(super::family);
        assert_eq!(names, ["kworker", "rayon", "opt cgu", "ksoftirqd", "42", "sshd"]);
    }

    #[test]
    fn an_end_without_a_begin_is_no_stretch() {
        let line = "x-1 [000] d.h.. 7: local_timer_exit: vector=236";
        assert_eq!(read(line, "truetick", 1.0), (vec![], true));
        assert_eq!(Event::of(line).map(|event| (event.cpu, event.at)), Some((0, 7)));
        assert!(Event::of("no event").is_none());
    }

    /// Lines of the kernel's documentation of the tracer (osnoise-tracer.rst) with stamps of the TSC, and a thread of ours.
    const NOISE: &str = "\
       osnoise/8-961     [008] d.h.  5789857532: irq_noise: local_timer:236 start 5789.857529929 duration 1845 ns
       osnoise/8-961     [008] dNh.  5789858408: irq_noise: local_timer:236 start 5789.858404871 duration 2848 ns
     migration/8-54      [008] d...  5789868413: thread_noise: migration/8:54 start 5789.858409300 duration 3068 ns
       osnoise/8-961     [008] ....  5789868413: sample_threshold: start 5789.858404555 duration 8812 ns interferences 2
      truetick-77        [008] d...  5789878413: thread_noise: truetick:77 start 5789.858409300 duration 3068 ns
      truetick-77        [008] d.h.  5789888413: nmi_noise: start 5789.858409300 duration 500 ns
";

    #[test]
    fn what_osnoise_reports_is_there_once() {
        let noise = vec![
            busy(8, 5_789_853_842, 5_789_857_532, "local timer"),
            busy(8, 5_789_852_712, 5_789_858_408, "local timer"),
            busy(8, 5_789_862_277, 5_789_868_413, "thread migration"),
            busy(8, 5_789_887_413, 5_789_888_413, "non-maskable interrupt"),
        ];
        assert_eq!(read(NOISE, "truetick", 2.0), (noise, true));
        let both = "\
 a-1 [000] d.h.. 1000: local_timer_entry: vector=236
 a-1 [000] d.h.. 1250: irq_noise: local_timer:236 start 0.1 duration 200 ns
 a-1 [000] d.h.. 1300: local_timer_exit: vector=236
";
        assert_eq!(read(both, "truetick", 1.0), (vec![busy(0, 1000, 1300, "local timer")], true));
    }
}
