//! Headers of IPv4 and UDP in front of a payload, for a raw socket.

use std::net::SocketAddrV4;

/// Both headers.
pub(crate) const HEADERS_LEN: usize = 28;
const IP_LEN: usize = 20;
const UDP: u8 = 17;

/// Fields that vary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// IPv4's identification; not zero, for which the kernel would draw one.
    pub(crate) id: u16,
}

/// Whether the UDP checksum is computed. IPv4 allows a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    Computed,
    Zero,
}

/// Writes both headers in front of `payload`. The kernel computes the IP header's checksum.
pub(crate) fn write(head: &mut [u8], fields: &Fields, payload: &[u8], checksum: Checksum) {
    let udp_len = (payload.len() + HEADERS_LEN - IP_LEN) as u16;
    let head = &mut head[..HEADERS_LEN];
    head[0] = 0x45;
    head[1] = fields.traffic_class;
    head[2..4].copy_from_slice(&(udp_len + IP_LEN as u16).to_be_bytes());
    head[4..6].copy_from_slice(&fields.id.to_be_bytes());
    head[6..8].fill(0);
    head[8] = if fields.hop_limit == 0 { 64 } else { fields.hop_limit };
    head[9] = UDP;
    head[10..12].fill(0);
    head[12..16].copy_from_slice(&fields.from.ip().octets());
    head[16..20].copy_from_slice(&fields.to.ip().octets());
    head[20..22].copy_from_slice(&fields.from.port().to_be_bytes());
    head[22..24].copy_from_slice(&fields.to.port().to_be_bytes());
    head[24..26].copy_from_slice(&udp_len.to_be_bytes());
    head[26..28].fill(0);
    if checksum == Checksum::Computed {
        // RFC 768: addresses, protocol, length, UDP header, payload.
        let pseudo = sum(&head[12..26]) + u64::from((u16::from(UDP)).to_be()) + u64::from(udp_len.to_be());
        let folded = fold(pseudo + sum(payload));
        let value = if folded == u16::MAX { folded } else { !folded };
        head[26..28].copy_from_slice(&value.to_ne_bytes());
    }
}

/// The sum of the 16-bit words of `bytes` in the machine's order, unfolded. RFC 1071 section 2: the order of the bytes
/// does not matter, and wider words may be added.
fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = [0_u64; 8];
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut rest = chunks.remainder().chunks_exact(2);
    let mut total: u64 = lanes.iter().sum();
    total += rest.by_ref().map(|word| u64::from(u16::from_ne_bytes([word[0], word[1]]))).sum::<u64>();
    total + rest.remainder().first().map_or(0, |last| u64::from(u16::from_ne_bytes([*last, 0])))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_verify_for_every_length() {
        let (from, to) = ("127.0.10.1:50000".parse().unwrap(), "127.64.0.1:20001".parse().unwrap());
        let payload: Vec<u8> = (0..1_300_u32).map(|at| (at * 7919) as u8).collect();
        for len in 0..payload.len() {
            let mut head = [0; HEADERS_LEN];
            let fields = Fields { from, to, traffic_class: 0, hop_limit: 63, id: 1 };
            write(&mut head, &fields, &payload[..len], Checksum::Computed);
            // Byte by byte, over the pseudo header and everything behind it (RFC 768).
            let mut bytes = head[12..20].to_vec();
            bytes.extend([0, UDP, head[24], head[25]]);
            bytes.extend(&head[20..]);
            bytes.extend(&payload[..len]);
            let words =
                bytes.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| (*low).into()));
            let mut total: u64 = words.sum();
            while total > 0xffff {
                total = (total & 0xffff) + (total >> 16);
            }
            assert_eq!(total, 0xffff, "{len}");
            assert_ne!(head[26..28], [0, 0]);
        }
    }
}
