//! `sendmmsg(2)` of datagrams and GSO batches, gathered from several buffers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use super::header::{empty_header, send_many};
use crate::IoFault;
use crate::ancillary::{Control, Leaving};
use crate::sockaddr::SockAddr;

/// A datagram or GSO batch to send: receiver, metadata and pieces.
pub(crate) struct Departure<I> {
    pub(crate) to: SocketAddr,
    pub(crate) leaving: Leaving,
    pub(crate) pieces: I,
}

/// Headers for one system call, reused so that no call allocates.
#[derive(Debug)]
pub(crate) struct Departures {
    receivers: Box<[(SockAddr, usize)]>,
    controls: Box<[(Control, usize)]>,
    iovecs: Vec<libc::iovec>,
    /// The end of the pieces of each departure.
    ends: Box<[usize]>,
    headers: Box<[libc::mmsghdr]>,
}

impl Departures {
    /// Creates headers for `capacity` departures per call, with `pieces` pieces in total.
    pub(crate) fn new(capacity: usize, pieces: usize) -> Self {
        Self {
            receivers: vec![(SockAddr::default(), 0); capacity].into_boxed_slice(),
            controls: vec![(Control::default(), 0); capacity].into_boxed_slice(),
            iovecs: Vec::with_capacity(pieces),
            ends: vec![0; capacity].into_boxed_slice(),
            headers: vec![empty_header(); capacity].into_boxed_slice(),
        }
    }

    /// Sends at most `capacity` `departures` in order. Calls `refused` with the index and the error of each one that
    /// the kernel rejects, before the next one is tried.
    pub(crate) fn send<'a, I: Iterator<Item = &'a [u8]>>(
        &mut self,
        socket: &impl AsFd,
        departures: impl Iterator<Item = Departure<I>>,
        mut refused: impl FnMut(usize, io::Error),
    ) {
        let mut count = 0;
        self.iovecs.clear();
        for (index, departure) in departures.take(self.headers.len()).enumerate() {
            self.receivers[index] = SockAddr::of(departure.to);
            let (control, len) = &mut self.controls[index];
            *len = control.write(&departure.leaving);
            let pieces = departure.pieces.filter(|piece| !piece.is_empty());
            self.iovecs.extend(
                pieces.map(|piece| libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() }),
            );
            self.ends[index] = self.iovecs.len();
            count = index + 1;
        }
        self.point_at(count);

        let descriptor = socket.as_fd().as_raw_fd();
        let (mut at, mut is_second_try) = (0, false);
        while at < count {
            let rest = &mut self.headers[at..count];
            let (headers, len) = (rest.as_mut_ptr(), rest.len() as libc::c_uint);
            // SAFETY: `headers` points to `len` initialised headers. Each points to a receiver, to iovecs and, where its
            // length is not zero, to a control message, all owned by `self`, which is borrowed exclusively until the
            // call returns. The iovecs point to slices borrowed for `'a`, which outlives this function; the kernel only
            // reads them, and keeps no pointer.
            let sent = unsafe { send_many(descriptor, headers, len, libc::MSG_DONTWAIT) };
            match usize::try_from(sent) {
                Ok(sent) => {
                    at += sent;
                    is_second_try = false;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() == io::ErrorKind::Interrupted {
                        continue;
                    }
                    // The error may be the late ICMP error of an earlier datagram, which this call has cleared. If it
                    // belongs to this datagram, the second try returns it again.
                    if is_second_try || !IoFault::may_be_late(&error) {
                        refused(at, error);
                        at += 1;
                        is_second_try = false;
                    } else {
                        is_second_try = true;
                    }
                }
            }
        }
    }

    /// Builds the first `count` headers, afresh for each call: no pointer outlives the borrow it was made under.
    fn point_at(&mut self, count: usize) {
        let mut iovecs = self.iovecs.as_mut_slice();
        let mut start = 0;
        let places = self.receivers.iter_mut().zip(&mut self.controls).zip(&self.ends);
        for (header, ((receiver, control), end)) in self.headers[..count].iter_mut().zip(places) {
            let (own, rest) = iovecs.split_at_mut(end - start);
            (iovecs, start) = (rest, *end);
            let header = &mut header.msg_hdr;
            header.msg_name = std::ptr::from_mut(&mut receiver.0).cast();
            header.msg_namelen = receiver.1 as libc::socklen_t;
            header.msg_iov = own.as_mut_ptr();
            header.msg_iovlen = own.len() as _;
            header.msg_control = std::ptr::from_mut(&mut control.0).cast();
            header.msg_controllen = control.1 as _;
        }
    }
}
