//! Moves corpora between their files and folders: `corpus unpack NAME FOLDER`, `corpus pack NAME FOLDER`,
//! `corpus add NAME FILE..`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::ExitCode;

use fuzz::corpus;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["unpack", name, folder] => {
            fs::create_dir_all(folder)?;
            for (number, input) in corpus::read(name)?.iter().enumerate() {
                fs::write(Path::new(folder).join(format!("{number:05}")), input)?;
            }
        }
        ["pack", name, folder] => {
            let files = fs::read_dir(folder)?.map(|entry| fs::read(entry?.path()));
            corpus::write(name, &files.collect::<Result<BTreeSet<_>>>()?)?;
        }
        ["add", name, ref files @ ..] => {
            let mut inputs = corpus::read(name)?;
            for file in files {
                inputs.insert(fs::read(file)?);
            }
            corpus::write(name, &inputs)?;
        }
        _ => {
            eprintln!("usage: corpus unpack NAME FOLDER | pack NAME FOLDER | add NAME FILE..");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
