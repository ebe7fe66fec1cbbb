//! ICMP errors about sent datagrams.

use std::io;
use std::net::SocketAddr;

use crate::sys::Slots;
use crate::{IoFault, UdpSocket};

/// An ICMP error about a datagram that a socket has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// The destination in the message's inner headers. Its family is that of the ICMP version.
    pub destination: SocketAddr,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code.
    pub code: u8,
    /// The next hop's MTU in bytes, if the type and code carry one.
    pub mtu: u32,
}

/// Receives ICMP errors of sockets with `IP_RECVERR` or `IPV6_RECVERR`.
///
/// Not `Send`: create it in the thread that uses it.
#[derive(Debug)]
pub struct IcmpInbox {
    slots: Slots,
}

/// Reports of one system call.
const REPORTS: usize = 16;
/// The datagram's content is not used.
const DATAGRAM_LEN: usize = 64;

impl Default for IcmpInbox {
    fn default() -> Self {
        Self { slots: Slots::new(REPORTS, DATAGRAM_LEN) }
    }
}

impl IcmpInbox {
    /// Calls `report` with each of the next ICMP errors of `socket`, at most 16, without blocking. Returns whether
    /// those were all. One system call.
    ///
    /// # Errors
    /// The kernel's error.
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
            // Errors of the host itself were already returned by a system call.
            let error = self.slots.ancillary(index).error;
            let icmp = error.filter(|error| matches!(error.origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6));
            if let Some(icmp) = icmp {
                let destination = self.slots.sender(index).get();
                report(IcmpReport { destination, kind: icmp.kind, code: icmp.code, mtu: icmp.mtu });
            }
        }
        Ok(count < REPORTS)
    }
}
