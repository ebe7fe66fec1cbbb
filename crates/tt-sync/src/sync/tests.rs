//! Threads of the litmus programs.

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs both, the second one in another thread, and returns their results.
///
/// They begin at the same time: a thread takes longer to start than a litmus program takes. Nothing orders the two
/// after that.
pub(crate) fn race<R, S: Send>(this: impl FnOnce() -> R, other: impl FnOnce() -> S + Send) -> (R, S) {
    let has_begun = AtomicBool::new(false);
    thread::scope(|scope| {
        let racing = scope.spawn(|| {
            has_begun.store(true, Ordering::Relaxed);
            other()
        });
        while !has_begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        (this(), racing.join().expect("the other thread failed"))
    })
}
