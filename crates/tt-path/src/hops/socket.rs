//! Two rtnetlink sockets: one for questions, one for the kernel's notifications.

use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::message::Message;

/// Longest datagram that is read, in bytes. The kernel's own are shorter than 64 KiB.
const DATAGRAM_LEN_MAX: usize = 1 << 17;
/// Bytes of notifications that may wait. The kernel doubles it, and limits it to `net.core.rmem_max`.
const WAITING_BYTES: u32 = 1 << 20;
/// Datagrams after which a process does something else.
const DATAGRAMS_MAX: usize = 1_024;
const DUMP_ATTEMPTS: usize = 3;

const MSG_DONTWAIT: i32 = 0x40;
const MSG_TRUNC: i32 = 0x20;
const EBUSY: i32 = 16;
const ENOBUFS: i32 = 105;
const ETIMEDOUT: i32 = 110;

/// Groups of notifications (`RTNLGRP_..` of `linux/rtnetlink.h`): LINK, NEIGH, IPV4_IFADDR, IPV4_ROUTE, IPV4_RULE,
/// IPV6_IFADDR, IPV6_ROUTE, IPV6_IFINFO, IPV6_RULE, NEXTHOP.
const GROUPS: [u32; 10] = [1, 3, 5, 7, 8, 9, 11, 12, 19, 32];

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The kernel's error number.
    Os(i32),
    /// The answer is not what the protocol says.
    Malformed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        error.raw_os_error().map_or(Self::Malformed, Self::Os)
    }
}

/// A socket for questions. The kernel answers while the question is sent, so that no call waits.
#[derive(Debug)]
pub(crate) struct Questions {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Questions {
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self { socket: open()?, buffer: Vec::new(), sequence: 0 })
    }

    /// Asks for one object.
    pub(crate) fn get(&mut self, question: Message) -> Result<Message, Failure> {
        self.send(question, 0)?;
        match self.receive()?.into_iter().next() {
            Some(NetlinkMessage { payload: NetlinkPayload::InnerMessage(answer), .. }) => Ok(answer),
            Some(NetlinkMessage { payload: NetlinkPayload::Error(error), .. }) => Err(error_of(error.raw_code())),
            Some(_) | None => Err(Failure::Malformed),
        }
    }

    /// Sends a command, and waits for its acknowledgement.
    pub(crate) fn command(&mut self, command: Message) -> Result<(), Failure> {
        self.send(command, NLM_F_ACK)?;
        match self.receive()?.into_iter().next() {
            Some(NetlinkMessage { payload: NetlinkPayload::Error(error), .. }) if error.raw_code() == 0 => Ok(()),
            Some(NetlinkMessage { payload: NetlinkPayload::Error(error), .. }) => Err(error_of(error.raw_code())),
            Some(_) | None => Err(Failure::Malformed),
        }
    }

    /// Asks for a whole table, and returns what `start` and `add` make of it. A table that changes meanwhile is read
    /// again.
    pub(crate) fn dump<T>(
        &mut self,
        question: &Message,
        start: impl Fn() -> T,
        add: impl Fn(&mut T, Message),
    ) -> Result<T, Failure> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut table = start();
            if self.dump_once(question, |message| add(&mut table, message))? == Dump::Whole {
                return Ok(table);
            }
        }
        Err(Failure::Os(EBUSY))
    }

    /// Reads to the end in any case: the kernel starts no other dump before.
    fn dump_once(&mut self, question: &Message, mut add: impl FnMut(Message)) -> Result<Dump, Failure> {
        self.send(question.clone(), NLM_F_DUMP)?;
        let (mut end, mut result) = (None, Ok(Dump::Whole));
        while end.is_none() {
            receive(&self.socket, &mut self.buffer)?;
            for message in messages(&self.buffer) {
                let Some(message) = message else {
                    result = Err(Failure::Malformed);
                    continue;
                };
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                if message.header.flags & NLM_F_DUMP_INTR != 0 {
                    result = result.and(Ok(Dump::Inconsistent));
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(message) => add(message),
                    NetlinkPayload::Done(done) => end = Some(done.code),
                    NetlinkPayload::Error(error) => end = Some(error.raw_code()),
                    NetlinkPayload::Noop | NetlinkPayload::Overrun(_) | _ => result = Err(Failure::Malformed),
                }
            }
        }
        if end == Some(0) { result } else { Err(end.map_or(Failure::Malformed, error_of)) }
    }

    fn send(&mut self, message: Message, flags: u16) -> Result<(), Failure> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        Ok(())
    }

    /// Returns the messages of the next datagram that answers the last question.
    fn receive(&mut self) -> Result<Vec<NetlinkMessage<Message>>, Failure> {
        for _ in 0..DATAGRAMS_MAX {
            receive(&self.socket, &mut self.buffer)?;
            let messages = messages(&self.buffer).collect::<Option<Vec<_>>>().ok_or(Failure::Malformed)?;
            if messages.first().is_some_and(|message| message.header.sequence_number == self.sequence) {
                return Ok(messages);
            }
        }
        Err(Failure::Os(ETIMEDOUT))
    }
}

/// End of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dump {
    Whole,
    Inconsistent,
}

fn error_of(code: i32) -> Failure {
    Failure::Os(code.saturating_neg())
}

/// What the socket of notifications has.
#[derive(Debug)]
pub(crate) enum Arrival {
    Message(Message),
    /// Notifications were lost, or one is not understood: everything may have changed.
    Lost,
}

/// A socket for the kernel's notifications.
#[derive(Debug)]
pub(crate) struct Notifications {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Notifications {
    pub(crate) fn open() -> Result<Self, Error> {
        let socket = open()?;
        socket.set_rx_buf_sz(WAITING_BYTES)?;
        GROUPS.into_iter().try_for_each(|group| socket.add_membership(group))?;
        Ok(Self { socket, buffer: Vec::new() })
    }

    /// Hands over what has arrived; never waits. The socket stays readable if there is more than 1,024 datagrams.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(Arrival)) -> Result<(), Failure> {
        for _ in 0..DATAGRAMS_MAX {
            match receive(&self.socket, &mut self.buffer) {
                Ok(()) => {
                    for message in messages(&self.buffer) {
                        take(match message.map(|message| message.payload) {
                            Some(NetlinkPayload::InnerMessage(message)) => Arrival::Message(message),
                            Some(_) | None => Arrival::Lost,
                        });
                    }
                }
                Err(Failure::Os(ENOBUFS) | Failure::Malformed) => take(Arrival::Lost),
                Err(Failure::Os(code)) if is_empty(code) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_empty(code: i32) -> bool {
    Error::from_raw_os_error(code).kind() == ErrorKind::WouldBlock
}

fn open() -> Result<Socket, Error> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.set_netlink_get_strict_chk(true)?;
    Ok(socket)
}

/// Reads a datagram of the kernel; others are skipped.
fn receive(socket: &Socket, buffer: &mut Vec<u8>) -> Result<(), Failure> {
    loop {
        buffer.clear();
        buffer.reserve(DATAGRAM_LEN_MAX);
        let (len, from) = socket.recv_from(buffer, MSG_DONTWAIT | MSG_TRUNC)?;
        if from.port_number() == 0 {
            return if len > buffer.len() { Err(Failure::Malformed) } else { Ok(()) };
        }
    }
}

/// The messages of a datagram; `None`, at the end, for one that is not understood.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Option<NetlinkMessage<Message>>> + '_ {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let len = NetlinkBuffer::new_checked(bytes).map_or(0, |buffer| buffer.length() as usize);
        let Some(message) = bytes.get(..len).filter(|message| !message.is_empty()) else {
            bytes = &[];
            return Some(None);
        };
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(NetlinkMessage::deserialize(message).ok())
    })
}
