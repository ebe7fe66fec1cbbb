//! The static program and the Debian package, made from the release build and tried as their users would; and the
//! documentation site.

use super::Workplace;
use crate::dist::{self, Line, Record, Shop};
use crate::tally::{Outcome, Tally};

/// Debian's packages of the programs that the test of the package starts.
const PROGRAMS: [(&str, &str); 3] = [("turnutils_uclient", "coturn"), ("ip", "iproute2"), ("dpkg-deb", "dpkg")];

pub(super) fn run(place: &Workplace) -> Outcome {
    if let Err(error) = place.program() {
        return Outcome::Ran(Tally::fail(error));
    }
    // What is missing is skipped below, with its reason.
    for (program, package) in PROGRAMS {
        let _ = place.bring_program(program, package);
    }
    place.bring_cargo_command("deb", "cargo-deb");
    let record = Shop::open(place.steps.root.clone()).and_then(|shop| dist::for_suite(&shop));
    // The static program took the place of the one that other suites use.
    let restored = super::binaries::build_program(&place.steps);
    let mut tally = tallied("packages", record);
    if let Err(error) = restored {
        tally.add(Tally::fail(error));
    }
    Outcome::Ran(tally)
}

/// The documentation site, every link of it followed.
pub(super) fn site(place: &Workplace) -> Outcome {
    // Without a server and a watcher of files.
    place.bring_crate(dist::MDBOOK, "search");
    let record = Shop::open(place.steps.root.clone()).and_then(|shop| dist::site_for_suite(&shop));
    Outcome::Ran(tallied("site", record))
}

fn tallied(name: &str, record: anyhow::Result<Record>) -> Tally {
    let record = match record {
        Ok(record) => record,
        Err(error) => return Tally::fail(format!("{name}: {error:#}")),
    };
    let mut tally = Tally::default();
    for line in &record.lines {
        tally.add(match line {
            Line::Done(_) => Tally::pass(),
            Line::Skipped(reason) => Tally::skip(name, reason),
            Line::Failed(reason) => Tally::fail(reason.clone()),
        });
    }
    tally
}
