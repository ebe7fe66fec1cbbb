//! Shutdown by signals: the first SIGINT or SIGTERM requests the end, the second one exits at once. A server that
//! drains receives each signal separately.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, process, thread};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit status after a second signal.
const STATUS_FORCED: i32 = 1;

/// A signal and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP, and SIGUSR2 as in coturn: reload the configuration.
    Hangup,
    /// SIGTERM, and SIGUSR1 as in coturn: drain, then end.
    Terminate,
    /// SIGINT, Ctrl-C: end at once.
    Interrupt,
}

/// Returns the signals from here on, caught by a separate thread. The third SIGINT or SIGTERM exits at once.
///
/// # Errors
/// The thread cannot be started or the signals cannot be caught.
pub fn signals() -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel();
    send_signals(sender)?;
    Ok(receiver)
}

/// Sends the signals to `sender` from here on, which may have other senders. The third SIGINT or SIGTERM exits at once;
/// one exits at once, too, when nothing receives any more.
///
/// # Errors
/// The thread cannot be started or the signals cannot be caught.
pub fn send_signals<T: From<Signal> + Send + 'static>(sender: mpsc::Sender<T>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let registration = {
        let _entered = runtime.enter();
        (
            signal(SignalKind::hangup())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::user_defined1())?,
            signal(SignalKind::user_defined2())?,
        )
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        let (mut hangup, mut interrupt, mut terminate, mut user1, mut user2) = registration;
        runtime.block_on(async {
            let mut ends = 0;
            loop {
                let signal = tokio::select! {
                    _ = hangup.recv() => Signal::Hangup,
                    _ = user2.recv() => Signal::Hangup,
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                    _ = user1.recv() => Signal::Terminate,
                };
                ends += u32::from(signal != Signal::Hangup);
                if ends > 2 || sender.send(signal.into()).is_err() && signal != Signal::Hangup {
                    process::exit(STATUS_FORCED);
                }
            }
        });
    })?;
    Ok(())
}

/// Events in their order, but one reload for all that are asked for while one is under way.
///
/// So an end waits for two reloads at most, however many were asked for before it.
pub struct Events<'a, T> {
    from: &'a mpsc::Receiver<T>,
    waiting: VecDeque<T>,
    is_reload: fn(&T) -> bool,
}

impl<'a, T> Events<'a, T> {
    /// Takes the events of `from`; those that `is_reload` names are merged while they wait.
    pub const fn new(from: &'a mpsc::Receiver<T>, is_reload: fn(&T) -> bool) -> Self {
        Self { from, waiting: VecDeque::new(), is_reload }
    }

    /// Takes the next event, and waits for one at most `most` if that is given.
    ///
    /// # Errors
    /// No event came in time, or none can come any more.
    pub fn next(&mut self, most: Option<Duration>) -> Result<T, mpsc::RecvTimeoutError> {
        let event = match (self.waiting.pop_front(), most) {
            (Some(event), _) => event,
            (None, None) => self.from.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)?,
            (None, Some(most)) => self.from.recv_timeout(most)?,
        };
        self.waiting.extend(self.from.try_iter());
        if (self.is_reload)(&event) {
            self.waiting.retain(|waiting| !(self.is_reload)(waiting));
        }
        Ok(event)
    }
}

/// Returns a flag that the first SIGINT or SIGTERM sets; the third exits at once.
///
/// # Errors
/// A thread cannot be started or the signals cannot be caught.
pub fn flag() -> io::Result<Arc<AtomicBool>> {
    let (signals, flag) = (signals()?, Arc::new(AtomicBool::new(false)));
    let set = Arc::clone(&flag);
    thread::Builder::new().name("stop".into()).spawn(move || {
        for _ in signals.iter().filter(|signal| *signal != Signal::Hangup) {
            set.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(flag)
}

/// Sends each SIGHUP from here on, caught by a separate thread; it does not end the process any more.
///
/// # Errors
/// The thread cannot be started or the signal cannot be caught.
pub fn send_hangups<T: From<Signal> + Send + 'static>(sender: mpsc::Sender<T>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut hangup = {
        let _entered = runtime.enter();
        signal(SignalKind::hangup())?
    };
    let forward =
        move || while runtime.block_on(hangup.recv()).is_some() && sender.send(Signal::Hangup.into()).is_ok() {};
    thread::Builder::new().name("hangups".into()).spawn(forward)?;
    Ok(())
}

/// Whether the end was requested. Clones see the same request.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: watch::Receiver<bool>,
}

/// Requests the end of its [`Shutdown`].
#[derive(Debug)]
pub struct Trigger {
    request: watch::Sender<bool>,
}

/// Returns a shutdown that ignores signals, and its trigger.
#[must_use]
pub fn pair() -> (Trigger, Shutdown) {
    let (request, requested) = watch::channel(false);
    (Trigger { request }, Shutdown { requested })
}

impl Trigger {
    /// Requests the end; asking again changes nothing.
    pub fn request(&self) {
        self.request.send_replace(true);
    }
}

impl Shutdown {
    /// Catches signals from here on, on a separate thread.
    ///
    /// # Errors
    /// The thread cannot be started or the signals cannot be caught.
    pub fn on_signals() -> io::Result<Self> {
        let (trigger, shutdown) = pair();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let registration = {
            let _entered = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        thread::Builder::new().name("signals".into()).spawn(move || {
            let (mut interrupt, mut terminate) = registration;
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    if *trigger.request.borrow() {
                        process::exit(STATUS_FORCED);
                    }
                    trigger.request();
                }
            });
        })?;
        Ok(shutdown)
    }

    /// Whether the end was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Blocks the thread until the end is requested. Not for use inside of a runtime.
    ///
    /// # Errors
    /// The operating system has nothing left to wait with.
    pub fn wait(&self) -> io::Result<()> {
        tokio::runtime::Builder::new_current_thread().build()?.block_on(self.clone().requested());
        Ok(())
    }

    /// Completes when the end is requested.
    pub async fn requested(mut self) {
        // A trigger that is gone can never ask: then the end is now.
        let _ = self.requested.wait_for(|requested| *requested).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reload_is_for_all_that_wait() {
        let (sender, receiver) = mpsc::channel();
        let mut events = Events::new(&receiver, |event| *event == 'r');
        "rrrarrerr".chars().for_each(|event| sender.send(event).unwrap());
        let mut next = |most| events.next(most);
        assert_eq!([next(None), next(None), next(None)], [Ok('r'), Ok('a'), Ok('e')]);
        assert_eq!(next(Some(Duration::ZERO)), Err(mpsc::RecvTimeoutError::Timeout));
        sender.send('r').unwrap();
        assert_eq!(next(Some(Duration::ZERO)), Ok('r'));
        drop(sender);
        assert_eq!(next(None), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn every_waiter_sees_the_request() {
        let (trigger, shutdown) = pair();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let waiter = shutdown.clone();
                thread::spawn(move || waiter.wait().map(|()| waiter.is_requested()))
            })
            .collect();
        assert!(!shutdown.is_requested());
        trigger.request();
        for waiter in waiters {
            assert!(waiter.join().expect("no panic").expect("waits"));
        }
    }
}
