//! `recvmmsg(2)` into slots that keep what they received until they are used again.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use super::header::{empty_header, receive_many};
use crate::ancillary::{self, Ancillary, Control};
use crate::sockaddr::SockAddr;

/// The kernel's result for one slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// Bytes of the datagram that are in the slot.
    pub(crate) len: usize,
    /// The datagram was longer than the slot.
    pub(crate) truncated: bool,
    control_len: usize,
}

/// Room for a number of datagrams, their senders and their control messages.
#[derive(Debug)]
pub(crate) struct Slots {
    bytes: Box<[u8]>,
    slot_len: usize,
    stride: usize,
    senders: Box<[SockAddr]>,
    controls: Box<[Control]>,
    arrivals: Box<[Arrival]>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Slots {
    /// `count` slots of `slot_len` bytes. Pages are taken from the system when they are first written.
    pub(crate) fn new(count: usize, slot_len: usize) -> Self {
        // An odd number of cache lines, so that the slots' first bytes do not all fall into one set of the cache.
        let stride = (slot_len.div_ceil(64) | 1) * 64;
        Self {
            bytes: vec![0; count * stride].into_boxed_slice(),
            slot_len,
            stride,
            senders: vec![SockAddr::default(); count].into_boxed_slice(),
            controls: vec![Control::default(); count].into_boxed_slice(),
            arrivals: vec![Arrival::default(); count].into_boxed_slice(),
            iovecs: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// The bytes that arrived in slot `index`.
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        let start = index * self.stride;
        &self.bytes[start..start + self.arrivals[index].len]
    }

    pub(crate) fn sender(&self, index: usize) -> &SockAddr {
        &self.senders[index]
    }

    pub(crate) fn arrival(&self, index: usize) -> Arrival {
        self.arrivals[index]
    }

    pub(crate) fn ancillary(&self, index: usize) -> Ancillary {
        self.controls[index].parse(self.arrivals[index].control_len)
    }

    /// Receives into `slots` without waiting and returns how many of them, from the first on, were filled.
    pub(crate) fn receive(&mut self, socket: &impl AsFd, slots: Range<usize>) -> io::Result<usize> {
        self.receive_from(socket, slots, libc::MSG_DONTWAIT)
    }

    /// The same from the queue of what went wrong with earlier datagrams: their first bytes, their receivers.
    pub(crate) fn receive_errors(&mut self, socket: &impl AsFd, slots: Range<usize>) -> io::Result<usize> {
        self.receive_from(socket, slots, libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE)
    }

    fn receive_from(&mut self, socket: &impl AsFd, slots: Range<usize>, flags: i32) -> io::Result<usize> {
        self.point_at(slots.clone());
        let (headers, count) = (self.headers.as_mut_ptr(), self.headers.len() as libc::c_uint);
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: `headers` points to `count` initialised headers. Each points to one iovec, one `SockAddr` and one
        // `Control` of this slot, with their true lengths, all owned by `self`, which is borrowed exclusively until
        // the call returns; the kernel keeps none of the pointers.
        let received = unsafe { receive_many(descriptor, headers, count, flags) };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        for (arrival, header) in self.arrivals[slots].iter_mut().zip(&self.headers[..received]) {
            *arrival = Arrival {
                len: (header.msg_len as usize).min(self.slot_len),
                truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                control_len: header.msg_hdr.msg_controllen as _,
            };
        }
        Ok(received)
    }

    /// Puts `bytes` from `sender` into slot `index`, or returns `false` where they do not fit.
    pub(crate) fn fill(&mut self, index: usize, sender: SocketAddr, bytes: &[u8]) -> bool {
        if bytes.len() > self.slot_len {
            return false;
        }
        let start = index * self.stride;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.senders[index] = SockAddr::of(sender).0;
        self.arrivals[index] = Arrival { len: bytes.len(), truncated: false, control_len: 0 };
        true
    }

    /// Builds the headers for `slots`, afresh for each call: the kernel overwrites the lengths in them, and no
    /// pointer outlives the exclusive borrow that it was made under.
    fn point_at(&mut self, slots: Range<usize>) {
        self.iovecs.clear();
        self.headers.clear();
        let span = slots.start * self.stride..slots.end * self.stride;
        for slot in self.bytes[span].chunks_exact_mut(self.stride) {
            self.iovecs.push(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: self.slot_len });
        }
        let places = self.senders[slots.clone()].iter_mut().zip(&mut self.controls[slots]);
        for ((sender, control), iovec) in places.zip(&mut self.iovecs) {
            let mut header = empty_header();
            header.msg_hdr.msg_name = std::ptr::from_mut(sender).cast();
            header.msg_hdr.msg_namelen = SockAddr::CAPACITY as libc::socklen_t;
            header.msg_hdr.msg_iov = std::ptr::from_mut(iovec);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = std::ptr::from_mut(control).cast();
            header.msg_hdr.msg_controllen = ancillary::CAPACITY as _;
            self.headers.push(header);
        }
    }
}
