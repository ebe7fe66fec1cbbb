//! What ICMP tells of datagrams that were sent.

use std::io;
use std::net::SocketAddr;

use crate::sys::Slots;
use crate::{IoFault, UdpSocket};

/// An ICMP error about a datagram that a socket has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// Where the datagram was sent: the destination in the message's inner headers. Its family is the ICMP version's.
    pub destination: SocketAddr,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code.
    pub code: u8,
    /// The next hop's MTU in bytes where the type and code tell of one.
    pub mtu: u32,
}

/// Takes ICMP errors from sockets that [tell of them](UdpSocket::tell_icmp).
///
/// Made in the thread that uses it: it is not `Send`.
#[derive(Debug)]
pub struct IcmpInbox {
    slots: Slots,
}

/// Reports of one system call.
const REPORTS: usize = 16;
/// Of the datagram itself nothing is looked at.
const DATAGRAM_LEN: usize = 64;

impl Default for IcmpInbox {
    fn default() -> Self {
        Self { slots: Slots::new(REPORTS, DATAGRAM_LEN) }
    }
}

impl IcmpInbox {
    /// Takes what `socket` has been told, without waiting, at most a few at a time, and calls `report` with each.
    /// Returns whether that was all. One system call.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive(&mut self, socket: &UdpSocket, mut report: impl FnMut(IcmpReport)) -> io::Result<bool> {
        let count = match self.slots.receive_errors(socket, 0..REPORTS) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted || IoFault::may_be_late(&error) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        for index in 0..count {
            // What the host itself found wrong was the answer to a system call.
            let error = self.slots.ancillary(index).error;
            let told = error.filter(|error| matches!(error.origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6));
            if let Some(told) = told {
                let destination = self.slots.sender(index).get();
                report(IcmpReport { destination, kind: told.kind, code: told.code, mtu: told.mtu });
            }
        }
        Ok(count < REPORTS)
    }
}
