//! `cargo xtask dist NAME`: artefacts for other machines, under target/dist, each with its test.

mod container;
mod crates;
mod debian;
mod inventory;
mod program;
mod record;
mod root;
mod shop;
mod site;
mod twice;
mod wheel;

use std::process::ExitCode;

use crate::workspace_root;
pub(crate) use program::Build;
pub(crate) use record::{Line, Record};
pub(crate) use shop::Shop;
use site::Chapters;
pub(crate) use site::MDBOOK;

/// Arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to make.
    #[arg(required_unless_present = "all")]
    name: Option<Artefact>,
    /// Make and test everything, and write the log into docs/packages.md.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Artefact {
    /// The stripped program, with its debug information next to it (needs binutils).
    Binary,
    /// The program without shared libraries, for x86-64 and 64-bit Arm, started in an empty folder.
    Static,
    /// The Debian package: installed, started, relayed through, removed and purged (needs cargo-deb).
    Deb,
    /// The container image without a daemon, its root file system run as an ordinary user (needs tar).
    Container,
    /// The Python wheel, installed and imported in a fresh environment (needs python3-venv).
    Wheel,
    /// The packaged crates, each built alone.
    Crates,
    /// The documentation site, every link of it followed (needs mdbook).
    Site,
    /// Bill of materials (CycloneDX), licences of the dependencies, checksums of what is in target/dist.
    Inventory,
    /// Two builds in two folders, compared bit by bit.
    Twice,
}

impl Artefact {
    fn make(self, shop: &Shop) -> anyhow::Result<Record> {
        match self {
            Self::Binary => program::dynamic(shop),
            Self::Static => program::tested(shop, Build::Distribution),
            Self::Deb => debian::make(shop, Build::Distribution),
            Self::Container => container::make(shop),
            Self::Wheel => wheel::make(shop),
            Self::Crates => crates::make(shop),
            Self::Site => site::make(shop, Chapters::All),
            Self::Inventory => inventory::make(shop),
            Self::Twice => twice::make(shop),
        }
    }
}

/// In the order in which later ones use what earlier ones made; `Inventory` adds the checksums of all.
const ALL: [Artefact; 9] = [
    Artefact::Binary,
    Artefact::Static,
    Artefact::Deb,
    Artefact::Container,
    Artefact::Wheel,
    Artefact::Crates,
    Artefact::Twice,
    Artefact::Site,
    Artefact::Inventory,
];

/// Makes what `arguments` name.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let shop = Shop::open(workspace_root())?;
    if let Some(name) = arguments.name {
        return Ok(if name.make(&shop)?.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let mut log = Vec::new();
    for artefact in ALL {
        let name = format!("{artefact:?}").to_lowercase();
        println!("{name}:");
        let record = artefact.make(&shop).unwrap_or_else(|error| Record::failed(&format!("{error:#}")));
        log.push((name, record));
    }
    record::keep(&shop, &log)?;
    let has_failed = log.iter().any(|(_, record)| record.has_failed());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Makes and tests the static program and the Debian package from the release build, for the suite `packages`.
pub(crate) fn for_suite(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = program::tested(shop, Build::Release)?;
    record.extend(debian::make(shop, Build::Release)?);
    Ok(record)
}

/// Makes the documentation site without rustdoc, for the suite `site`.
pub(crate) fn site_for_suite(shop: &Shop) -> anyhow::Result<Record> {
    site::make(shop, Chapters::Pages)
}
