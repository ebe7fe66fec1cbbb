//! The compiled programs, as the build script has packed them.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// `bpf/paths.bpf.o` in zlib's format (RFC 1950).
pub(crate) const PATHS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/paths.bpf.o.zlib"));
/// `bpf/steer.bpf.o` in zlib's format.
pub(crate) const STEER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o.zlib"));

/// Unpacks one of them.
///
/// # Panics
/// If the bytes are not what the build script wrote.
pub(crate) fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut object = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut object).expect("the build script packs the objects");
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_objects_are_the_committed_ones() {
        assert!(unpack(PATHS) == include_bytes!("../bpf/paths.bpf.o"));
        assert!(unpack(STEER) == include_bytes!("../bpf/steer.bpf.o"));
    }
}
