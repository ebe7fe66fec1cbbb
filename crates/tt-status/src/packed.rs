//! Text files that a build script has packed into the binary.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// A text file in zlib's format (RFC 1950).
#[derive(Clone, Copy, Debug)]
pub struct Packed(&'static [u8]);

impl Packed {
    /// A file that the build script of the calling crate has packed; see [`packed!`](crate::packed!).
    pub const fn new(bytes: &'static [u8]) -> Self {
        Self(bytes)
    }

    /// Unpacks the file.
    ///
    /// # Panics
    /// If the bytes are not what the build script wrote.
    pub fn text(&self) -> String {
        let mut text = String::new();
        ZlibDecoder::new(self.0).read_to_string(&mut text).expect("the build script packs text");
        text
    }
}

/// The packed file `$name` of the calling crate's build script, as [`Packed`](crate::packed::Packed).
#[macro_export]
macro_rules! packed {
    ($name:literal) => {
        $crate::packed::Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zlib")))
    };
}
