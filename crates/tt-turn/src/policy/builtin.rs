//! Ranges that are denied by default: everything outside of the public Internet.

use super::Cidr;
use super::cidr::{v4, v6};

/// 6to4 and Teredo.
pub(super) const TUNNELS: [Cidr; 2] = [v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32)];

/// The special-purpose registries of IANA, multicast, and metadata services of clouds outside of those.
pub(super) const DENIED: [Cidr; 37] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 100, 100, 200], 32),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 31, 196, 0], 24),
    v4([192, 52, 193, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([192, 175, 48, 0], 24),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([255, 255, 255, 255], 32),
    v4([240, 0, 0, 0], 4),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 0),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128),
    v6([0, 0, 0, 0, 0, 0, 0, 0x1], 128),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
    v6([0x64, 0xff9b, 0x1, 0, 0, 0, 0, 0], 48),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// What IANA has assigned to global unicast (RFC 4291 section 2.4). The rest of IPv6 is denied.
pub(super) const ALLOWED: [Cidr; 1] = [v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3)];

/// "This host on this network" (RFC 1122 section 3.2.1.3): a datagram to it reaches services of this host.
pub(super) const CLOSED: [Cidr; 2] = [v4([0, 0, 0, 0], 8), v6([0, 0, 0, 0, 0, 0, 0, 0], 128)];
