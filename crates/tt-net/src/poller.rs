//! Edge-triggered readiness of sockets.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::UdpSocket;

/// An epoll instance. It is edge-triggered: a socket is returned once per change, so it must be drained.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    wake: Arc<EventFd>,
    events: Vec<EpollEvent>,
    ready: Vec<u64>,
    faulted: Vec<u64>,
}

/// Wakes a sleeping [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

/// The key of the wake-up itself; never returned.
const WAKE: u64 = u64::MAX;

impl Poller {
    /// Creates a poller that returns at most `capacity` sockets per call.
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`.
    pub fn new(capacity: usize) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        epoll.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, WAKE))?;
        let events = vec![EpollEvent::empty(); capacity + 1];
        Ok(Self { epoll, wake, events, ready: Vec::with_capacity(capacity + 1), faulted: Vec::new() })
    }

    /// Registers `socket` under `key`, which must not be `u64::MAX`. A socket that is already readable is returned too.
    ///
    /// # Errors
    /// `EEXIST`, `ENOSPC` (`fs.epoll.max_user_watches`), `ENOMEM`.
    pub fn add(&self, socket: &impl AsFd, key: u64) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, key))?)
    }

    /// Registers a listener or a connection under `key` until it is closed, for reading and writing.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_stream(&self, stream: &impl AsFd, key: u64) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        Ok(self.epoll.add(stream, EpollEvent::new(flags, key))?)
    }

    /// Removes `socket`.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn remove(&self, socket: &UdpSocket) -> io::Result<()> {
        Ok(self.epoll.delete(socket)?)
    }

    /// Removes a listener or a connection, which another poller may serve from now on.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn remove_stream(&self, stream: &impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(stream)?)
    }

    /// Blocks until a socket becomes readable, a [`Waker`] is used or `timeout` expires (rounded up to milliseconds;
    /// `None`: never), and returns the keys of the readable sockets: none on a wake-up or timeout.
    ///
    /// # Errors
    /// The kernel's error; an interruption by a signal is none.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<&[u64]> {
        let timeout = match timeout {
            None => EpollTimeout::NONE,
            Some(span) => {
                let millis = span.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128);
                EpollTimeout::try_from(millis as i32).unwrap_or(EpollTimeout::ZERO)
            }
        };
        self.ready.clear();
        self.faulted.clear();
        match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => {
                // Edge-triggered, so the eventfd's count need not be read back: the next write is a new edge.
                let events = self.events[..count].iter().filter(|event| event.data() != WAKE);
                for event in events {
                    self.ready.push(event.data());
                    if event.events().contains(EpollFlags::EPOLLERR) {
                        self.faulted.push(event.data());
                    }
                }
                Ok(&self.ready)
            }
            Err(Errno::EINTR) => Ok(&[]),
            Err(error) => Err(error.into()),
        }
    }

    /// The keys returned by the last [`wait`](Self::wait) whose sockets have an error, such as an
    /// ICMP error.
    #[must_use]
    pub fn faulted(&self) -> &[u64] {
        &self.faulted
    }

    /// A handle that wakes this poller.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }
}

impl Waker {
    /// Makes the poller's present or next `wait` return at once.
    pub fn wake(&self) {
        // The only failure is a full counter (2^64 - 1 unread wake-ups), and then a wake-up is pending anyway.
        let _ = self.0.write(1);
    }
}
