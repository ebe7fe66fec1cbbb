//! `cargo xtask assembly`: the loads, stores and barriers of tt-sync's hot functions as machine code of 64-bit Arm.
//!
//! The orderings of the source are acquire and release instructions there, and no barrier is needed. A rule says how
//! many of them each function has at least; a committed file has all memory instructions of the recorded compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const SOURCE: &str = "tools/xtask/assembly/hot.rs";
const KEPT: &str = "tools/xtask/assembly/aarch64.txt";
const BUILD: &str = "target/assembly";
/// Processors: the first 64-bit Arm, whose atomic swaps are calls of the compiler's library, and those that have
/// instructions for them and weaker acquire loads, such as AWS Graviton 2 and later.
const PROCESSORS: [(&str, &str); 2] = [("armv8.0", ""), ("armv8.3", "+lse,+rcpc")];

const ACQUIRE: &[&str] = &["ldar", "ldapr"];
const RELEASE: &[&str] = &["stlr"];
const SWAP_ACQUIRE: &[&str] = &["swpa", "__aarch64_swp4_acq"];
const SWAP_RELEASE: &[&str] = &["swpl", "__aarch64_swp4_rel"];
/// Mnemonics, any of which counts, and the least number of them.
type Need = (&'static [&'static str], usize);
/// What each function has at least.
const RULES: &[(&str, &[Need])] = &[
    // The head of the consumer; the sequence.
    ("push", &[(ACQUIRE, 1), (RELEASE, 1)]),
    ("push_slice", &[(ACQUIRE, 1), (RELEASE, 1)]),
    // The sequence; the head.
    ("pop", &[(ACQUIRE, 1), (RELEASE, 1)]),
    ("drain", &[(ACQUIRE, 1), (RELEASE, 1)]),
    ("region_push", &[(ACQUIRE, 1), (RELEASE, 1)]),
    ("region_pop", &[(ACQUIRE, 1), (RELEASE, 1)]),
    // The seven words and the closing version; the first look at the version, and the words.
    ("cell_store", &[(RELEASE, 8)]),
    ("cell_load", &[(ACQUIRE, 8)]),
    ("park_wake", &[(SWAP_RELEASE, 1)]),
    ("park_wait", &[(SWAP_ACQUIRE, 1), (ACQUIRE, 1), (RELEASE, 1)]),
];
/// Barriers, which none of them needs. `isb` is no barrier of memory: it is what the library does between two polls.
const BARRIERS: &[&str] = &["dmb", "dsb"];
/// Beginnings of the mnemonics that access memory.
const ACCESSES: &[&str] = &["ld", "st", "swp", "cas", "prfm"];
/// Beginning of the functions of the compiler's library that are one atomic instruction.
const OUTLINED: &str = "__aarch64_";

/// Arguments of `cargo xtask assembly`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Keep the instructions instead of comparing them.
    #[arg(long)]
    accept: bool,
}

/// A function of machine code.
#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    /// The mnemonics of its memory instructions, without those of its stack frame.
    instructions: Vec<String>,
}

/// Builds the functions and compares them, or keeps them.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    let built = build(&root)?;
    let faults = if arguments.accept {
        std::fs::write(root.join(KEPT), &built.text)?;
        println!("{KEPT} is kept");
        built.faults
    } else {
        compare(&root, built)?.faults
    };
    faults.iter().for_each(|fault| println!("{fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Result of a build.
pub(crate) struct Comparison {
    /// Rules that are broken, and differences from the kept instructions.
    pub(crate) faults: Vec<String>,
    /// Why the instructions were not compared with the kept ones.
    pub(crate) skip: Option<String>,
}

/// Builds the functions, applies the rules, and compares them with the kept ones if the compiler is the same.
pub(crate) fn check(root: &Path) -> anyhow::Result<Comparison> {
    compare(root, build(root)?)
}

fn compare(root: &Path, built: Built) -> anyhow::Result<Comparison> {
    let kept = std::fs::read_to_string(root.join(KEPT)).context(KEPT)?;
    let compiler = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let mut comparison = Comparison { faults: built.faults, skip: None };
    if compiler(&kept) == compiler(&built.text) {
        comparison.faults.extend(differences(&kept, &built.text));
    } else {
        comparison.skip = Some(format!("{KEPT} is of {}, this is {}", compiler(&kept), compiler(&built.text)));
    }
    Ok(comparison)
}

/// What was built.
struct Built {
    /// The compiler, and a line for each processor and function.
    text: String,
    /// Rules that are broken.
    faults: Vec<String>,
}

fn build(root: &Path) -> anyhow::Result<Built> {
    let folder = root.join(BUILD);
    let mut library = Command::new("cargo");
    library.args(["build", "--quiet", "--release", "--locked", "--package", "tt-sync", "--lib", "--target", TARGET]);
    let status = library.arg("--target-dir").arg(&folder).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "tt-sync does not build for {TARGET}");
    let (mut text, mut faults) = (compiler(root)? + "\n", Vec::new());
    for (processor, features) in PROCESSORS {
        let assembly = folder.join(format!("{processor}.s"));
        compile(root, &folder.join(TARGET).join("release"), features, &assembly)?;
        let assembly = std::fs::read_to_string(&assembly).with_context(|| assembly.display().to_string())?;
        let functions = functions(&assembly);
        faults.extend(broken(&functions).into_iter().map(|fault| format!("{processor} {fault}")));
        for Function { name, instructions } in functions {
            text += &format!("{processor} {name}: {}\n", instructions.join(" "));
        }
    }
    Ok(Built { text, faults })
}

/// Compiles the functions with the library in `library`.
fn compile(root: &Path, library: &Path, features: &str, assembly: &PathBuf) -> anyhow::Result<()> {
    let mut compile = Command::new("rustc");
    compile.args([
        "--edition",
        "2024",
        "--crate-type",
        "lib",
        "--crate-name",
        "hot",
        "--target",
        TARGET,
        "--emit",
        "asm",
    ]);
    compile.args(["-Copt-level=3", "-Ccodegen-units=1", "-Csymbol-mangling-version=v0"]);
    compile.arg(format!("-Ctarget-feature={features}")).arg("--extern");
    compile.arg(format!("tt_sync={}", library.join("libtt_sync.rlib").display()));
    compile.arg("-L").arg(format!("dependency={}", library.join("deps").display())).arg("-o").arg(assembly);
    let status = compile.arg(SOURCE).current_dir(root).status().context("rustc")?;
    ensure!(status.success(), "{SOURCE} does not build");
    Ok(())
}

/// The first line of `rustc --version`, without the date.
fn compiler(root: &Path) -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("--version").current_dir(root).output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split(" (").next().unwrap_or_default().to_owned())
}

/// The functions of the rules in an assembly file, in their order.
fn functions(assembly: &str) -> Vec<Function> {
    RULES.iter().filter_map(|(name, _)| function(assembly, name)).collect()
}

fn function(assembly: &str, name: &str) -> Option<Function> {
    // As the compiler's version 0 of symbols ends: crate and name, each after its length.
    let label = format!("_3hot{}{name}:", name.len());
    let mut lines = assembly.lines().skip_while(|line| !line.ends_with(&label));
    lines.next()?;
    let instructions = lines.take_while(|line| !line.contains(".cfi_endproc")).filter_map(memory_instruction).collect();
    Some(Function { name: name.to_owned(), instructions })
}

/// The mnemonic of a line that accesses memory other than the stack, or is a barrier.
fn memory_instruction(line: &str) -> Option<String> {
    let mut words = line.strip_prefix('\t')?.split_whitespace();
    let mnemonic = words.next()?;
    if let Some(outlined) = words.next().filter(|operand| operand.starts_with(OUTLINED)) {
        return Some(outlined.to_owned());
    }
    let is_access = ACCESSES.iter().any(|access| mnemonic.starts_with(access)) && !line.contains("[sp");
    (is_access || BARRIERS.contains(&mnemonic)).then(|| mnemonic.to_owned())
}

/// Rules that the functions break.
fn broken(functions: &[Function]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, needs) in RULES {
        let Some(function) = functions.iter().find(|function| function.name == *name) else {
            faults.push(format!("{name}: it is not in the machine code"));
            continue;
        };
        let number = |of: &[&str]| function.instructions.iter().filter(|found| of.contains(&found.as_str())).count();
        for (mnemonics, least) in *needs {
            let found = number(mnemonics);
            if found < *least {
                faults.push(format!("{name}: {found} of {}, at least {least} needed", mnemonics.join(" or ")));
            }
        }
        if number(BARRIERS) != 0 {
            faults.push(format!("{name}: a barrier that nothing needs"));
        }
    }
    faults
}

fn differences(kept: &str, built: &str) -> Vec<String> {
    let (kept, built): (Vec<_>, Vec<_>) = (kept.lines().collect(), built.lines().collect());
    (0..kept.len().max(built.len()))
        .map(|index| [&kept, &built].map(|lines| lines.get(index).copied().unwrap_or_default()))
        .filter(|[kept, built]| kept != built)
        .map(|[kept, built]| format!("kept `{kept}`, built `{built}`: `cargo xtask assembly --accept` keeps it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSEMBLY: &str = "\
_RNvCs1_3hot4push:
\t.cfi_startproc
\tstp\tx29, x30, [sp, #-16]!
\tldar\tx9, [x9]
\tadd\tx9, x9, x8
\tstlr\tx8, [x10]
\tret
\t.cfi_endproc
_RNvCs1_3hot9park_wake:
\tbl\t__aarch64_swp4_rel
\tdmb\tish
\t.cfi_endproc
";

    #[test]
    fn memory_instructions_are_found_by_function() {
        let found = functions(ASSEMBLY);
        let names: Vec<_> = found.iter().map(|found| (&*found.name, found.instructions.join(" "))).collect();
        assert_eq!(names, [("push", "ldar stlr".to_owned()), ("park_wake", "__aarch64_swp4_rel dmb".to_owned())]);
    }

    #[test]
    fn a_weaker_store_a_barrier_and_an_absent_function_break_the_rules() {
        let of = |assembly: &str, name: &str| {
            let faults = broken(&functions(assembly));
            faults.into_iter().find(|fault| fault.starts_with(&format!("{name}:")))
        };
        assert_eq!(of(ASSEMBLY, "push"), None);
        let weaker = ASSEMBLY.replace("stlr", "str");
        assert_eq!(of(&weaker, "push").unwrap(), "push: 0 of stlr, at least 1 needed");
        assert_eq!(of(ASSEMBLY, "park_wake").unwrap(), "park_wake: a barrier that nothing needs");
        assert_eq!(of(ASSEMBLY, "pop").unwrap(), "pop: it is not in the machine code");
    }

    #[test]
    fn another_line_is_a_difference() {
        assert_eq!(differences("a\nb\n", "a\nb\n"), Vec::<String>::new());
        assert_eq!(differences("a\nb\n", "a\nc\n").len(), 1);
        assert_eq!(differences("a\n", "a\nb\n").len(), 1);
        assert_eq!(differences("a\nb\n", "a\n").len(), 1);
    }
}
