//! Batches of datagrams by `recvmmsg(2)` and `sendmmsg(2)`, with the header's fields.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::RawFd;

const CONTROL_LEN: usize = 160;
const HEADER_LEN: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

/// What the kernel says of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) from: SocketAddrV4,
    /// Where it was sent to, if the socket asks for it (`IP_RECVORIGDSTADDR`).
    pub(crate) to: Option<SocketAddrV4>,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// The length of each datagram of a GRO batch; zero for one datagram.
    pub(crate) segment_len: usize,
    /// Type and code of an ICMP error.
    pub(crate) icmp: Option<(u8, u8)>,
}

/// Received datagrams.
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    slot_len: usize,
    senders: Box<[libc::sockaddr_in]>,
    controls: Box<[Control]>,
    /// Bytes of each, and of its control messages.
    lens: Vec<(usize, usize)>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

fn name(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: address.ip().to_bits().to_be() },
        sin_zero: [0; 8],
    }
}

fn address(name: &libc::sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr)), u16::from_be(name.sin_port))
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn empty() -> libc::mmsghdr {
    // SAFETY: a structure of integers and raw pointers, all of which may be zero.
    unsafe { std::mem::zeroed() }
}

impl Inbox {
    pub(crate) fn new(count: usize, slot_len: usize) -> Self {
        // An odd number of cache lines, as the shipped program has it.
        let slot_len = (slot_len.div_ceil(64) | 1) * 64;
        Self {
            bytes: vec![0; count * slot_len].into(),
            slot_len,
            senders: vec![name(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); count].into(),
            controls: vec![Control([0; CONTROL_LEN]); count].into(),
            lens: Vec::with_capacity(count),
            iovecs: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
        }
    }

    /// Receives what is there, at most as much as fits; `flags` such as `MSG_ERRQUEUE`.
    pub(crate) fn receive(&mut self, socket: RawFd, flags: i32) -> io::Result<usize> {
        self.lens.clear();
        self.iovecs.clear();
        self.headers.clear();
        for slot in self.bytes.chunks_exact_mut(self.slot_len) {
            self.iovecs.push(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: self.slot_len });
        }
        let places = self.senders.iter_mut().zip(&mut self.controls).zip(&mut self.iovecs);
        for ((sender, control), iovec) in places {
            let mut header = empty();
            header.msg_hdr.msg_name = std::ptr::from_mut(sender).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_hdr.msg_iov = std::ptr::from_mut(iovec);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = std::ptr::from_mut(control).cast();
            header.msg_hdr.msg_controllen = CONTROL_LEN;
            self.headers.push(header);
        }
        let (headers, count) = (self.headers.as_mut_ptr(), self.headers.len() as libc::c_uint);
        // SAFETY: `count` initialised headers, each with one sender, one control message and one iovec of this inbox,
        // with their true lengths; `self` is borrowed exclusively and the kernel keeps no pointer.
        let count = unsafe { libc::recvmmsg(socket, headers, count, flags | libc::MSG_DONTWAIT, std::ptr::null_mut()) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let lens = self.headers[..count].iter();
        self.lens.extend(lens.map(|header| (header.msg_len as usize, header.msg_hdr.msg_controllen)));
        Ok(count)
    }

    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.slot_len..][..self.lens[index].0]
    }

    /// Whether the last batch was a full one.
    pub(crate) fn is_full(&self) -> bool {
        self.lens.len() == self.senders.len()
    }

    pub(crate) fn meta(&self, index: usize) -> Meta {
        let from = address(&self.senders[index]);
        let mut meta = Meta { from, to: None, traffic_class: 0, hop_limit: 0, segment_len: 0, icmp: None };
        let mut rest = &self.controls[index].0[..self.lens[index].1.min(CONTROL_LEN)];
        while let (Some(len), Some(level), Some(kind)) = (take(rest, 0), take(rest, 8), take(rest, 12)) {
            let len = usize::from_ne_bytes(len);
            let Some(body) = rest.get(HEADER_LEN..len) else { break };
            match (i32::from_ne_bytes(level), i32::from_ne_bytes(kind)) {
                (libc::IPPROTO_IP, libc::IP_ORIGDSTADDR) => {
                    let port = take(body, 2).map(u16::from_be_bytes);
                    let ip = take::<4>(body, 4).map(Ipv4Addr::from);
                    meta.to = ip.zip(port).map(|(ip, port)| SocketAddrV4::new(ip, port));
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => meta.traffic_class = body.first().copied().unwrap_or(0),
                (libc::IPPROTO_IP, libc::IP_TTL) => {
                    meta.hop_limit = take(body, 0).map_or(0, i32::from_ne_bytes) as u8;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    meta.segment_len = take(body, 0).map_or(0, i32::from_ne_bytes).max(0) as usize;
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) => meta.icmp = take::<2>(body, 5).map(|[kind, code]| (kind, code)),
                _ => {}
            }
            rest = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
        }
        meta
    }
}

/// A datagram to send: bytes of the outbox, then bytes of a received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Which socket.
    pub(crate) key: u32,
    pub(crate) to: SocketAddrV4,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// `SO_MARK` of the datagram; zero for none.
    pub(crate) mark: u32,
    pub(crate) head_len: usize,
    /// Index of the received datagram and its range.
    pub(crate) quote: (usize, usize, usize),
}

/// Datagrams that leave together.
pub(crate) struct Outbox {
    heads: Box<[u8]>,
    heads_used: usize,
    queue: Vec<(Outgoing, usize)>,
    names: Vec<libc::sockaddr_in>,
    controls: Vec<(Control, usize)>,
    iovecs: Vec<[libc::iovec; 2]>,
    headers: Vec<libc::mmsghdr>,
    /// Datagrams that the kernel did not take.
    pub(crate) refused: u64,
}

impl Outbox {
    pub(crate) fn new(count: usize, head_len_max: usize) -> Self {
        Self {
            heads: vec![0; count * head_len_max].into(),
            heads_used: 0,
            queue: Vec::with_capacity(count),
            names: Vec::with_capacity(count),
            controls: Vec::with_capacity(count),
            iovecs: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
            refused: 0,
        }
    }

    /// Room for the next head.
    pub(crate) fn head(&mut self) -> &mut [u8] {
        &mut self.heads[self.heads_used..]
    }

    pub(crate) fn push(&mut self, outgoing: Outgoing) {
        self.queue.push((outgoing, self.heads_used));
        self.heads_used += outgoing.head_len;
    }

    /// Sends everything, with one system call for a run of one socket.
    pub(crate) fn flush(&mut self, inbox: &Inbox, socket: impl Fn(u32) -> RawFd) {
        self.queue.sort_by_key(|(outgoing, _)| outgoing.key);
        let queue = std::mem::take(&mut self.queue);
        for run in queue.chunk_by(|(one, _), (other, _)| one.key == other.key) {
            self.send(inbox, socket(run[0].0.key), run);
        }
        self.queue = queue;
        self.queue.clear();
        self.heads_used = 0;
    }

    fn send(&mut self, inbox: &Inbox, socket: RawFd, run: &[(Outgoing, usize)]) {
        let piece = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        self.names.clear();
        self.controls.clear();
        self.iovecs.clear();
        self.headers.clear();
        for (outgoing, at) in run {
            let (index, start, end) = outgoing.quote;
            let quoted = if start == end { &[] } else { &inbox.bytes(index)[start..end] };
            self.names.push(name(outgoing.to));
            self.controls.push(control(outgoing));
            self.iovecs.push([piece(&self.heads[*at..at + outgoing.head_len]), piece(quoted)]);
        }
        let places = self.names.iter_mut().zip(&mut self.controls).zip(&mut self.iovecs);
        for ((name, (control, len)), iovec) in places {
            let mut header = empty();
            header.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_hdr.msg_iov = iovec.as_mut_ptr();
            header.msg_hdr.msg_iovlen = 2;
            if *len > 0 {
                header.msg_hdr.msg_control = std::ptr::from_mut(control).cast();
                header.msg_hdr.msg_controllen = *len;
            }
            self.headers.push(header);
        }
        let (mut at, mut is_second_try) = (0, false);
        while at < self.headers.len() {
            let rest = &mut self.headers[at..];
            // SAFETY: initialised headers, each with one name, two iovecs and perhaps a control message of this outbox;
            // the iovecs point to heads of this outbox and to bytes of `inbox`, both borrowed over this call. The
            // kernel only reads them and keeps no pointer.
            let sent =
                unsafe { libc::sendmmsg(socket, rest.as_mut_ptr(), rest.len() as libc::c_uint, libc::MSG_DONTWAIT) };
            match usize::try_from(sent) {
                Ok(sent) => (at, is_second_try) = (at + sent, false),
                // The error may be the late ICMP error of another datagram, which this call has cleared.
                Err(_) if !is_second_try => is_second_try = true,
                Err(_) => {
                    self.refused += 1;
                    (at, is_second_try) = (at + 1, false);
                }
            }
        }
    }
}

/// The control messages of `outgoing`, as the shipped program writes them, and a mark.
fn control(outgoing: &Outgoing) -> (Control, usize) {
    let (mut control, mut len) = (Control([0; CONTROL_LEN]), 0);
    let messages = [
        (libc::IPPROTO_IP, libc::IP_TOS, u32::from(outgoing.traffic_class)),
        (libc::IPPROTO_IP, libc::IP_TTL, u32::from(outgoing.hop_limit)),
        (libc::SOL_SOCKET, libc::SO_MARK, outgoing.mark),
    ];
    for (level, kind, value) in messages {
        if value != 0 {
            let room = &mut control.0[len..len + 24];
            room[..8].copy_from_slice(&(HEADER_LEN + 4).to_ne_bytes());
            room[8..12].copy_from_slice(&level.to_ne_bytes());
            room[12..16].copy_from_slice(&kind.to_ne_bytes());
            room[16..20].copy_from_slice(&value.to_ne_bytes());
            len += 24;
        }
    }
    (control, len)
}

/// Sets an option of one integer.
pub(crate) fn set(socket: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let (place, len) = (std::ptr::from_ref(&value).cast(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: `place` points to `len` initialised bytes that outlive the call.
    let done = unsafe { libc::setsockopt(socket, level, option, place, len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until one of `sockets` can be read or has an error, or for `timeout_ms`. Says which.
pub(crate) fn wait<const N: usize>(sockets: [RawFd; N], timeout_ms: i32) -> [libc::c_short; N] {
    let mut polled = sockets.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: `N` initialised entries, borrowed over the call.
    unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    polled.map(|polled| polled.revents)
}
