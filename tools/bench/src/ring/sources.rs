//! Where the design of the ring's bench is in this repository: the steps of the ablation, then the other parts.

use crate::loops::ablation::Step;
use crate::report::{Part, Source};

const fn source(path: &'static str, item: &'static str) -> Source {
    Source { path, item }
}

const CLOCK: &str = "crates/tt-meter/src/clock.rs";
const CLOCKS: &str = "tools/bench/src/loops/ablation/clocks.rs";
const EARLY_GATE: &str = "tools/bench/src/loops/ablation/early_gate.rs";
const INDEX_RING: &str = "tools/bench/src/loops/ablation/index_ring.rs";
const RING_MEMORY: &str = "tools/bench/src/loops/ablation/ring_memory.rs";
const EVALUATOR: &str = "crates/tt-risk/src/evaluator.rs";
const PRODUCER: &str = "crates/tt-sync/src/spsc/producer.rs";
const CONSUMER: &str = "crates/tt-sync/src/spsc/consumer.rs";
const STORAGE: &str = "crates/tt-sync/src/spsc/storage.rs";
const PAIR: &str = "tools/bench/src/machine/pair.rs";

/// A step of the ablation as it ships, and the code in its place in a build without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepCode {
    step: Step,
    /// The step; its sources are the code of a build with it.
    pub(super) part: Part,
    /// Empty where a build without the step leaves the code out.
    pub(super) without: &'static [Source],
}

/// Returns the code that `step` switches.
pub(super) const fn of_step(step: Step) -> StepCode {
    STEPS[step.number() as usize - 1]
}

/// Returns where the published figure of `step` comes from.
pub(super) const fn published_source(step: Step) -> &'static str {
    match step.published_p50_ns() {
        Some(_) => "Published by NullRing, chart of p50 after each step (C++ on Windows, two pinned cores)",
        None if matches!(step, Step::SequenceInSlot) => "Not one of NullRing's steps",
        None => "In NullRing's text, without a figure",
    }
}

/// Returns the implementation map: every step of the ablation that ships, then the parts that no step switches.
pub(super) fn map() -> Vec<Part> {
    // The naive clock is the starting point only.
    let steps = STEPS.iter().filter(|code| code.step != Step::NaiveClock);
    steps.map(|code| code.part).chain(PARTS).collect()
}

const STEPS: [StepCode; 11] = [
    StepCode {
        step: Step::NaiveClock,
        part: Part {
            name: "naive clock",
            what: "stamps by std::time::Instant",
            sources: &[source(CLOCKS, "Naive::ns")],
        },
        without: &[],
    },
    StepCode {
        step: Step::Rdtsc,
        part: Part {
            name: "counter in place of a clock",
            what: "stamps read the CPU's counter; its scale is measured once",
            sources: &[source(CLOCKS, "Unordered::before"), source(CLOCK, "Clock::unordered")],
        },
        without: &[source(CLOCKS, "Naive::ns")],
    },
    StepCode {
        step: Step::Rdtscp,
        part: Part {
            name: "ordered read of the counter",
            what: "a stamp waits for the work before it",
            sources: &[source(CLOCK, "Clock::start"), source(CLOCK, "Clock::end")],
        },
        without: &[source(CLOCKS, "Unordered::after")],
    },
    StepCode {
        step: Step::Affinity,
        part: Part {
            name: "core affinity",
            what: "each thread is pinned to one CPU",
            sources: &[source("crates/tt-os/src/cpu.rs", "pin"), source(PAIR, "Threads")],
        },
        without: &[],
    },
    StepCode {
        step: Step::Alignment,
        part: Part {
            name: "cache-line alignment",
            what: "a slot is one cache line; what the two ends write is 128 bytes apart",
            sources: &[source(STORAGE, "SlotMemory"), source(STORAGE, "CacheAligned")],
        },
        without: &[source(RING_MEMORY, "Shared::slot"), source(RING_MEMORY, "Shared::head")],
    },
    StepCode {
        step: Step::LockedMemory,
        part: Part {
            name: "locked memory",
            what: "every page is locked; a new ring writes all of its slots",
            sources: &[source("crates/tt-os/src/memory.rs", "lock_all"), source(STORAGE, "Owned::pair")],
        },
        without: &[source(RING_MEMORY, "Shared::new")],
    },
    StepCode {
        step: Step::Priority,
        part: Part {
            name: "real-time priority",
            what: "both threads ask for SCHED_FIFO",
            sources: &[source("crates/tt-os/src/priority.rs", "request_fifo")],
        },
        without: &[],
    },
    StepCode {
        step: Step::RelaxedAtomics,
        part: Part {
            name: "acquire and release",
            what: "one release store publishes an event, one acquire load consumes it",
            sources: &[source(PRODUCER, "Producer::push"), source(CONSUMER, "Consumer::pop_numbered")],
        },
        without: &[source(RING_MEMORY, "Shared::STORE")],
    },
    StepCode {
        step: Step::BranchFree,
        part: Part {
            name: "branch-free evaluator",
            what: "every check is made; the reasons are bits of one mask",
            sources: &[source(EVALUATOR, "Evaluator::evaluate_profile")],
        },
        without: &[source(EARLY_GATE, "EarlyGate::evaluate_until_refused")],
    },
    StepCode {
        step: Step::FixedPoint,
        part: Part {
            name: "fixed point",
            what: "prices and quantities are 64-bit integers, their products 128-bit",
            sources: &[source("crates/tt-model/src/quantity.rs", "Price"), source(EVALUATOR, "OrderChecks::of")],
        },
        without: &[source(EARLY_GATE, "EarlyGate::evaluate_wholly")],
    },
    StepCode {
        step: Step::SequenceInSlot,
        part: Part {
            name: "sequence in the slot",
            what: "one cache line an event: the sequence next to it says that it is there",
            sources: &[source(STORAGE, "Slot"), source(PRODUCER, "Producer::push")],
        },
        without: &[source(INDEX_RING, "IndexSender::send"), source(INDEX_RING, "IndexReceiver::receive")],
    },
];

const PARTS: [Part; 11] = [
    Part {
        name: "SPSC ring",
        what: "a power of two of slots; the sequence of an event shares its cache line",
        sources: &[source("crates/tt-sync/src/spsc.rs", "ring"), source(STORAGE, "Slot")],
    },
    Part {
        name: "keeping the next slot's line",
        what: "the idle producer writes the next slot's sequence again, so that its line is there when the event comes",
        sources: &[source(PRODUCER, "Producer::hold_next")],
    },
    Part {
        name: "waiting",
        what: "spin, yield, or sleep on a futex after some polls",
        sources: &[
            source("crates/tt-sync/src/wait.rs", "Spin"),
            source("crates/tt-sync/src/wait.rs", "Park"),
            source("crates/tt-os/src/futex.rs", "sleep"),
        ],
    },
    Part {
        name: "event of 64 bytes",
        what: "the slot holds a sequence of 8 bytes and terms of 56; the consumer joins them to the intent",
        sources: &[
            source("crates/tt-model/src/intent.rs", "OrderIntent"),
            source("crates/tt-model/src/intent.rs", "OrderTerms"),
        ],
    },
    Part {
        name: "huge pages",
        what: "memory on huge pages for the latency floor; the report states how much of the process lies on them",
        sources: &[
            source("crates/tt-os/src/pages.rs", "Pages::map"),
            source("tools/bench/src/ring/machine.rs", "huge_pages"),
        ],
    },
    Part {
        name: "clock calibration",
        what: "scale and cost of the counter, measured against CLOCK_MONOTONIC_RAW",
        sources: &[source("crates/tt-meter/src/calibration.rs", "Calibration::measure")],
    },
    Part {
        name: "producer, ring, evaluator",
        what: "the timed loop, one event in flight or at a fixed rate",
        sources: &[
            source("tools/bench/src/loops/hand_over.rs", "hand_over"),
            source("tools/bench/src/loops/hand_over.rs", "Idle"),
        ],
    },
    Part {
        name: "distance between the cores",
        what: "half a round trip of one cache line, before and after every run; it names the placement",
        sources: &[
            source("tools/bench/src/machine/ping_pong.rs", "PingPong::ask"),
            source("tools/bench/src/machine/placement.rs", "Placement::of"),
        ],
    },
    Part {
        name: "floor",
        what: "one cache line that passes the same message between the same threads",
        sources: &[source("tools/bench/src/loops/one_line.rs", "one_line")],
    },
    Part {
        name: "stalls by cause",
        what: "events above the threshold, with the interrupt, preemption or steal that the kernel counted meanwhile",
        sources: &[source("tools/bench/src/machine/stall.rs", "Evidence::cause")],
    },
    Part {
        name: "ablation",
        what: "one build for each set of switches; all of them accept the same orders",
        sources: &[
            source("tools/bench/src/loops/ablation.rs", "run_build"),
            source("tools/bench/src/loops/ablation/step.rs", "Switches::parts"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Part, STEPS, Source, map, of_step};
    use crate::loops::ablation::Step;

    /// Whether `text` has `name` as a whole word right after `before`.
    fn declares(text: &str, before: &str, name: &str) -> bool {
        text.match_indices(&format!("{before} {name}")).any(|(at, found)| {
            let is_word = |text: Option<char>| text.is_some_and(|next| next.is_alphanumeric() || next == '_');
            !is_word(text[at + found.len()..].chars().next()) && !is_word(text[..at].chars().next_back())
        })
    }

    /// Whether `text`, the code above its tests, has `item`.
    fn holds(text: &str, item: &str) -> bool {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let Some((of, name)) = item.split_once("::") else {
            return ["struct", "enum", "trait", "fn", "const", "static"].iter().any(|kind| declares(code, kind, item));
        };
        // From the line of an `impl` of the type to the closing brace in the first column.
        let mut is_within = false;
        code.lines().any(|line| {
            let head = line.split('{').next().unwrap_or_default();
            if line.starts_with("impl") {
                let subject = head.rsplit_once(" for ").map_or_else(|| after_parameters(head), |(_, subject)| subject);
                is_within = declares(&format!("impl {}", subject.trim_start()), "impl", of);
            } else if line.starts_with('}') {
                is_within = false;
            }
            is_within && ["fn", "const"].iter().any(|kind| declares(line, kind, name))
        })
    }

    /// The rest of `impl<A, B<C>> Rest`.
    fn after_parameters(head: &str) -> &str {
        let head = head.strip_prefix("impl").unwrap_or(head);
        let mut depth = 0;
        let end = head.find(|letter| {
            depth += i32::from(letter == '<') - i32::from(letter == '>');
            depth == 0
        });
        end.map_or("", |end| head[end..].strip_prefix('>').unwrap_or(&head[end..]))
    }

    #[test]
    fn an_item_is_found_where_it_is_declared_only() {
        let text = "pub struct Ring<T>(T);\nimpl<T: Into<u8>> Ring<T> {\n    pub const fn push(self) {}\n}\n\
                    impl<'a, T> Sends for End<'a, T> {\n    fn send(self) {}\n}\nfn make() {}\n\
                    #[cfg(test)]\nmod tests {\n    fn unseen() {}\n}\n";
        for item in ["Ring", "Ring::push", "End::send", "make"] {
            assert!(holds(text, item), "{item}");
        }
        for item in ["Rin", "pus", "Ring::send", "Ring::make", "End::push", "Sends::send", "unseen", "Ring::pus"] {
            assert!(!holds(text, item), "{item}");
        }
    }

    #[test]
    fn every_source_is_in_its_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let steps = STEPS.iter().flat_map(|code| code.part.sources.iter().chain(code.without));
        let map = map();
        let all: Vec<&Source> = map.iter().flat_map(|part| part.sources).chain(steps).collect();
        assert!(all.len() > 30, "{}", all.len());
        for Source { path, item } in all {
            let text = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(holds(&text, item), "{path} has no {item}");
        }
    }

    #[test]
    fn every_part_names_code_and_no_name_is_there_twice() {
        let map = map();
        let mut names: Vec<&str> = map.iter().map(|part| part.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), map.len());
        assert!(map.iter().all(|Part { what, sources, .. }| !what.is_empty() && !sources.is_empty()));
        assert!(Step::ALL.into_iter().all(|step| of_step(step).step == step));
    }
}
