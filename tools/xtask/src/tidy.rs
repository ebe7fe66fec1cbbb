//! `cargo xtask tidy`: what of the style a program can check. Each rule is a function from the tree to violations.

mod budget;
mod dependencies;
mod figures;
mod floats;
mod kept_results;
pub(crate) mod links;
mod manifests;
mod module_cycles;
mod names;
mod ratchet;
pub(crate) mod site;
mod test_rules;
mod unsafety;
mod venues;
mod words;

use std::path::Path;
use std::process::ExitCode;

use crate::qualify::availability;
use crate::tree::Tree;
use crate::violation::Violation;

/// Arguments of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Lower the kept counts of tools/xtask/ratchet.toml to those of the tree, and mark the tables of stale results.
    #[arg(long)]
    accept: bool,
    /// Print each word that STYLE.md rules out in the files whose path begins with FOLDER.
    #[arg(long, value_name = "FOLDER")]
    words: Option<String>,
    /// Print the cycles between the top-level modules of each crate.
    #[arg(long)]
    cycles: bool,
}

/// Checks the workspace and prints each violation.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    let tree = Tree::read(&root)?;
    if let Some(folder) = &arguments.words {
        for file in tree.files.iter().filter(|file| file.path.starts_with(folder)) {
            words::find(file).iter().for_each(|(line, words)| println!("{}:{line}: {words}", file.path));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.cycles {
        module_cycles::find(&tree).iter().for_each(|(folder, cycle)| println!("{folder}: {}", cycle.join(", ")));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.accept {
        ratchet::accept(&root, &tree)?;
        kept_results::accept(&root, &tree)?;
        availability::accept(&root)?;
    }
    if !crate::in_ci() {
        notes(&Tree::read(&root)?).iter().for_each(|note| println!("note: {note}"));
    }
    crate::qualify::stale(&root).iter().for_each(|line| println!("note: {line}"));
    let violations = violations(&root)?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} violations", violations.len());
    Ok(ExitCode::FAILURE)
}

/// Violations in CI only; notes elsewhere.
fn notes(tree: &Tree) -> Vec<Violation> {
    let mut notes = crate::conformance::unlisted_tests(tree);
    notes.extend(ratchet::slack(tree));
    notes
}

/// All violations of the tree under `root`, in the order of the rules.
pub(crate) fn violations(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let tree = Tree::read(root)?;
    let mut violations = dependencies::check(&tree, &dependencies::read(root)?);
    violations.extend(manifests::check(&tree));
    violations.extend(unsafety::check(&tree));
    violations.extend(budget::check(&tree));
    violations.extend(names::check(&tree));
    violations.extend(test_rules::check(&tree));
    violations.extend(links::check(&tree));
    violations.extend(site::check(&tree));
    violations.extend(ratchet::check(&tree));
    violations.extend(figures::check(&tree));
    violations.extend(floats::check(&tree));
    violations.extend(venues::check(&tree));
    violations.extend(crate::bpf::check(root)?);
    match kept_results::check(root, &tree) {
        Ok(found) => violations.extend(found),
        Err(reason) => println!("skipped: kept results, {reason}"),
    }
    violations.extend(availability::check(root, &tree));
    violations.extend(crate::conformance::check(&tree));
    if crate::in_ci() {
        violations.extend(notes(&tree));
    }
    Ok(violations)
}
