//! Sleeping at a word until it changes, in one process or two.

use nix::errno::Errno;
use rustix::thread::futex::{Flags, Timespec, wait, wake as wake_some};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` is `value`, until [`wake`]. May return early, on a signal for one.
pub fn sleep(word: &AtomicU32, value: u32) {
    // A word that differs and a signal are reasons to look again, as is any other.
    let _ = wait(word, Flags::empty(), value, None);
}

/// As [`sleep`], for `timeout` at most.
///
/// # Errors
/// `ETIMEDOUT` if that is why it returned.
pub fn sleep_at_most(word: &AtomicU32, value: u32, timeout: Duration) -> Result<(), Errno> {
    let timeout = Timespec::try_from(timeout).map_err(|_| Errno::EINVAL)?;
    match wait(word, Flags::empty(), value, Some(&timeout)) {
        Err(rustix::io::Errno::TIMEDOUT) => Err(Errno::ETIMEDOUT),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Wakes everyone who sleeps at `word`.
pub fn wake(word: &AtomicU32) {
    // It fails for words that lie nowhere only.
    let _ = wake_some(word, Flags::empty(), i32::MAX.cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::{sleep, sleep_at_most, wake};
    use nix::errno::Errno;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    #[test]
    fn a_sleeper_is_woken_once_its_word_has_changed() {
        let (word, answer) = (AtomicU32::new(1), AtomicU32::new(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 1 {
                    sleep(&word, 1);
                }
                answer.store(2, Ordering::Release);
                wake(&answer);
            });
            word.store(2, Ordering::Release);
            wake(&word);
            while answer.load(Ordering::Acquire) == 1 {
                sleep(&answer, 1);
            }
        });
    }

    #[test]
    fn a_changed_word_prevents_sleep_and_a_timeout_ends_it() {
        let word = AtomicU32::new(1);
        sleep(&word, 2);
        assert_eq!(sleep_at_most(&word, 2, Duration::from_secs(3600)), Ok(()));
        assert_eq!(sleep_at_most(&word, 1, Duration::from_millis(1)), Err(Errno::ETIMEDOUT));
    }
}
