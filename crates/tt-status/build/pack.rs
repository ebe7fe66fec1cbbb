//! Packs text files that a binary embeds. The unpacking half is `tt_status::packed`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Writes each file of `sources` to `$OUT_DIR/NAME.zlib`.
pub(crate) fn pack(sources: &[&str]) -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
    for source in sources {
        println!("cargo:rerun-if-changed={source}");
        let name = Path::new(source).file_name().unwrap_or_default().to_string_lossy();
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&fs::read(source)?)?;
        fs::write(folder.join(format!("{name}.zlib")), packed.finish()?)?;
    }
    Ok(())
}
