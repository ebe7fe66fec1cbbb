//! A thread that answers each intent and does nothing else.

use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use tt_model::{OrderIntent, Verdict};
use tt_sync::spsc::{Consumer, Producer, ring};
use tt_sync::wait::{Park, RingEnd as _, WaitStrategy as _};

use super::{Line, SLOTS};

/// As the gate's thread waits.
const POLLS: u32 = 64;
const SLEEP_MAX: Duration = Duration::from_millis(50);

type Wait = Park<fn(&AtomicU32, u32), fn(&AtomicU32)>;

fn wait(spins: bool) -> Wait {
    let polls = if spins { u32::MAX } else { POLLS };
    Park { polls, sleep: sleep_at_most, wake: tt_os::futex::wake }
}

fn sleep_at_most(word: &AtomicU32, value: u32) {
    let _ = tt_os::futex::sleep_at_most(word, value, SLEEP_MAX);
}

/// The ends of the echo's rings.
pub(super) struct EchoLine {
    intents: Producer<OrderIntent>,
    verdicts: Consumer<Verdict>,
    wait: Wait,
}

impl Line for EchoLine {
    #[inline(always)]
    fn send(&mut self, intent: OrderIntent) -> bool {
        let is_sent = self.intents.push(intent).is_ok();
        self.wait.wake(self.intents.other_wake_word());
        is_sent
    }

    #[inline(always)]
    fn poll(&mut self) -> Option<Verdict> {
        let verdict = self.verdicts.pop()?;
        self.wait.wake(self.verdicts.other_wake_word());
        Some(verdict)
    }
}

/// Calls `use_line` with the ends of an echo whose thread is pinned to `cpu`.
///
/// # Errors
/// That of `use_line`, or no thread can be started.
pub(super) fn with_echo<R>(
    spins: bool,
    cpu: usize,
    use_line: impl FnOnce(&mut EchoLine) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let (intents, taken) = ring(SLOTS);
    let (given, verdicts) = ring(SLOTS);
    thread::scope(|scope| {
        let echo = scope.spawn(move || {
            tt_os::cpu::pin(cpu).context("cannot pin the echo")?;
            answer(taken, given, wait(spins));
            anyhow::Ok(())
        });
        let mut line = EchoLine { intents, verdicts, wait: wait(spins) };
        let used = use_line(&mut line);
        line.intents.close();
        line.wait.wake(line.intents.other_wake_word());
        echo.join().ok().context("the echo panicked")??;
        used
    })
}

fn answer(mut intents: Consumer<OrderIntent>, mut verdicts: Producer<Verdict>, wait: Wait) {
    loop {
        let intent = wait.wait(&mut intents, |ring| match ring.pop() {
            Some(intent) => Some(Some(intent)),
            // The last intents may have been pushed after the first look.
            None if ring.is_abandoned() => Some(ring.pop()),
            None => None,
        });
        let Some(intent) = intent else { return };
        // There is room for every intent of a run.
        let _ = verdicts.push(Verdict { client_id: intent.client_id, accept: 1, ..Verdict::default() });
        wait.wake(verdicts.other_wake_word());
    }
}
