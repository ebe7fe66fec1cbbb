//! `sendmmsg(2)` of datagrams that are gathered from several places.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use super::header::empty_header;
use crate::ancillary::Control;
use crate::sockaddr::SockAddr;

/// The most pieces that one datagram is gathered from: a head, a payload, padding.
pub(crate) const PIECES: usize = 3;

/// A datagram to send: its receiver, the address to leave from where the socket has several, and its pieces.
pub(crate) struct Departure<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) traffic_class: u8,
    pub(crate) pieces: [&'a [u8]; PIECES],
}

/// Headers for one system call, kept between calls so that nothing is allocated.
#[derive(Debug)]
pub(crate) struct Departures {
    receivers: Box<[(SockAddr, usize)]>,
    controls: Box<[(Control, usize)]>,
    iovecs: Box<[[libc::iovec; PIECES]]>,
    headers: Box<[libc::mmsghdr]>,
}

impl Departures {
    /// Room for `capacity` datagrams a call.
    pub(crate) fn new(capacity: usize) -> Self {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            receivers: vec![(SockAddr::default(), 0); capacity].into_boxed_slice(),
            controls: vec![(Control::default(), 0); capacity].into_boxed_slice(),
            iovecs: vec![[nothing; PIECES]; capacity].into_boxed_slice(),
            headers: vec![empty_header(); capacity].into_boxed_slice(),
        }
    }

    /// Sends `datagrams`, at most `capacity` of them, and calls `refused` with the index of and the reason for each
    /// one that the kernel does not take. Returns how many it took.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &impl AsFd,
        datagrams: impl Iterator<Item = Departure<'a>>,
        mut refused: impl FnMut(usize, io::Error),
    ) -> usize {
        let mut count = 0;
        for (index, departure) in datagrams.take(self.headers.len()).enumerate() {
            self.receivers[index] = SockAddr::of(departure.to);
            match (departure.source, departure.traffic_class) {
                (None, 0) => self.controls[index].1 = 0,
                (source, class) => self.controls[index] = Control::leaving(source, class, departure.to.is_ipv6()),
            }
            for (iovec, piece) in self.iovecs[index].iter_mut().zip(departure.pieces) {
                *iovec = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
            }
            count = index + 1;
        }
        self.point_at(count);

        let descriptor = socket.as_fd().as_raw_fd();
        let (mut at, mut taken) = (0, 0);
        while at < count {
            let rest = &mut self.headers[at..count];
            let (headers, len) = (rest.as_mut_ptr(), rest.len() as libc::c_uint);
            // SAFETY: `headers` points to `len` initialised headers. Each points to a receiver, `PIECES` iovecs and,
            // where its length is not zero, a control message, all owned by `self`, which is borrowed exclusively
            // until the call returns. The iovecs point to slices borrowed for `'a`, which outlives this function;
            // the kernel only reads them, and keeps no pointer.
            let sent = unsafe { libc::sendmmsg(descriptor, headers, len, libc::MSG_DONTWAIT as _) };
            match usize::try_from(sent) {
                Ok(sent) => {
                    at += sent;
                    taken += sent;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        // sendmmsg reports the error of its first datagram only; the others have not been tried.
                        refused(at, error);
                        at += 1;
                    }
                }
            }
        }
        taken
    }

    /// Builds the first `count` headers, afresh for each call: no pointer outlives the borrow it was made under.
    fn point_at(&mut self, count: usize) {
        let places = self.receivers.iter_mut().zip(&mut self.controls).zip(&mut self.iovecs);
        for (header, ((receiver, control), iovecs)) in self.headers[..count].iter_mut().zip(places) {
            let header = &mut header.msg_hdr;
            header.msg_name = std::ptr::from_mut(&mut receiver.0).cast();
            header.msg_namelen = receiver.1 as libc::socklen_t;
            header.msg_iov = iovecs.as_mut_ptr();
            header.msg_iovlen = PIECES as _;
            header.msg_control = std::ptr::from_mut(&mut control.0).cast();
            header.msg_controllen = control.1 as _;
        }
    }
}
