//! Why the program relayed a packet, dropped it, or handed it up.

use crate::PathError;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:literal, $c:literal, $label:literal;)+) => {
        /// Result of the program for one packet, in the order in which the conditions are tested.
        ///
        /// [`Reason::Relayed`] leaves, [`Reason::Bandwidth`] is dropped, and every other packet goes up to the sockets
        /// unchanged. Packets that are not the server's (other protocols, other ports) are not counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name = $value,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: [Self; [$($value),+].len()] = [$(Self::$name),+];

            /// Returns the label in metrics.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }
        }

        /// The constants of the program.
        pub(crate) const IN_PROGRAM: [(&str, u32); Reason::ALL.len()] = [$(($c, $value)),+];
    };
}

reasons! {
    /// The packet left with new headers.
    Relayed = 1, "RELAYED", "relayed";
    /// The frame has a VLAN tag.
    Tagged = 2, "TAGGED", "tagged";
    /// The IPv4 header has options.
    Options = 3, "OPTIONS", "options";
    /// The packet is a fragment.
    Fragment = 4, "FRAGMENT", "fragment";
    /// The IPv6 packet has an extension header.
    Extension = 5, "EXTENSION", "extension";
    /// The lengths of frame, IP and UDP disagree.
    Length = 6, "LENGTH", "length";
    /// A packet to a listener is not exactly one ChannelData message: STUN, DTLS, padding.
    NotChannel = 7, "NOT_CHANNEL", "not_channel";
    /// The interface is not attached, or is switched off.
    Interface = 8, "INTERFACE", "interface";
    /// The frame is addressed to another Ethernet address.
    OtherHost = 9, "OTHER_HOST", "other_host";
    /// No path is open for the packet.
    NoFlow = 10, "NO_FLOW", "no_flow";
    /// The path's lease is over: time, epoch, heartbeat or switch.
    Stale = 11, "STALE", "stale";
    /// TTL or hop limit is 0 or 1.
    HopLimit = 12, "HOP_LIMIT", "hop_limit";
    /// There is no UDP checksum, and the new packet must have one.
    ZeroChecksum = 13, "ZERO_CHECKSUM", "zero_checksum";
    /// The sender left the UDP checksum to its device.
    PartialChecksum = 14, "PARTIAL_CHECKSUM", "partial_checksum";
    /// A verified checksum, IPv4's or UDP's, is wrong.
    BadChecksum = 15, "BAD_CHECKSUM", "bad_checksum";
    /// The next hop is not resolved.
    NoHop = 16, "NO_HOP", "no_hop";
    /// The new packet is longer than the next hop's MTU.
    TooBig = 17, "TOO_BIG", "too_big";
    /// The new frame would be shorter than Ethernet's 60 bytes.
    TooShort = 18, "TOO_SHORT", "too_short";
    /// The interface is not proven yet; the packet counts for its proof.
    Proving = 19, "PROVING", "proving";
    /// The interface's proof failed.
    Unproven = 20, "UNPROVEN", "unproven";
    /// Other CPUs changed the meter at the same time, four times.
    Contended = 21, "CONTENDED", "contended";
    /// The meter is empty. The packet is dropped.
    Bandwidth = 22, "BANDWIDTH", "bandwidth";
    /// The driver leaves no room before the frame.
    Headroom = 23, "HEADROOM", "headroom";
    /// The frame became too short during the rewrite, which no kernel does. The packet is dropped.
    Lost = 24, "LOST", "lost";
}

/// Packets by reason, since the program was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonCounts(pub(crate) [u64; Reason::ALL.len()]);

impl ReasonCounts {
    /// Sums what `read` returns for each reason and CPU.
    pub(crate) fn read(mut read: impl FnMut(u32) -> Result<u64, PathError>) -> Result<Self, PathError> {
        let mut counts = [0; Reason::ALL.len()];
        for (count, reason) in counts.iter_mut().zip(Reason::ALL) {
            *count = read(reason as u32)?;
        }
        Ok(Self(counts))
    }

    /// Returns the packets of one reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count_and_label() {
        let counts = ReasonCounts::read(|index| Ok(u64::from(index) * 10)).unwrap();
        for reason in Reason::ALL {
            assert_eq!(counts.of(reason), reason as u64 * 10);
            assert_eq!(Reason::ALL.iter().filter(|other| other.label() == reason.label()).count(), 1);
        }
    }
}
