//! The evaluation's machine code: no jump depends on an intent. Optimised builds on x86-64 only.

use std::hint::black_box;
use std::process::Command;
use testkit::{Requirement, find_program, require};
use tt_meter::Off;
use tt_model::{OrderIntent, Verdict};
use tt_risk::{Evaluator, Limits};

/// Look-ups that the compiler cannot see to be within their tables: the row, the market, the account's rate, the word
/// of the instrument's kill switch. Each is one jump that is never taken.
const BOUNDS_CHECKS: usize = 4;

#[inline(never)]
fn evaluate_eight(gate: &mut Evaluator, now_ns: u64, intent: &OrderIntent) -> Verdict {
    gate.evaluate_profile::<{ Limits::EIGHT.0 }>(now_ns, intent, &mut Off)
}

#[inline(never)]
fn evaluate_plainly(gate: &mut Evaluator, now_ns: u64, intent: &OrderIntent) -> Verdict {
    gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, intent, &mut Off)
}

#[test]
fn no_jump_depends_on_the_intent() {
    let mut gate = Evaluator::new(1, 1);
    for evaluate in [evaluate_eight, evaluate_plainly] {
        let verdict = black_box(evaluate)(&mut gate, black_box(1), &black_box(OrderIntent::default()));
        assert_eq!(verdict.accept, 0);
    }
    let is_optimised = !cfg!(debug_assertions) && cfg!(target_arch = "x86_64");
    let build = is_optimised.then_some(()).ok_or("this build is not optimised for x86-64");
    let Some(()) = require(Requirement::OptimisedBuild, build) else { return };
    let Some(objdump) = require(Requirement::Program, find_program("objdump", "binutils")) else { return };
    let this = std::env::current_exe().unwrap();
    let output = Command::new(objdump).args(["-d", "--demangle", "--no-show-raw-insn"]).arg(this).output().unwrap();
    let code = String::from_utf8(output.stdout).unwrap();
    let eight = assert_straight(&code, "evaluate_eight", BOUNDS_CHECKS);
    let plain = assert_straight(&code, "evaluate_plainly", BOUNDS_CHECKS);
    assert!(eight < plain, "what is left out of a profile is not in its code: {eight} of {plain}");
}

/// Asserts that no jump of `function` but `bounds_checks` depends on anything; how many instructions it has.
fn assert_straight(code: &str, function: &str, bounds_checks: usize) -> usize {
    let mut lines = code.lines().skip_while(|line| !(line.ends_with(">:") && line.contains(function)));
    assert!(lines.next().is_some(), "the function is in the binary");
    let body: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let parts = |line: &'_ str| {
        let mut columns = line.split('\t');
        let address = u64::from_str_radix(columns.next()?.trim().trim_end_matches(':'), 16).ok()?;
        let mut words = columns.next()?.split_whitespace().map(str::to_owned);
        Some((address, words.next()?, words.next().unwrap_or_default()))
    };
    let instructions: Vec<_> = body.iter().filter_map(|line| parts(line)).collect();
    let opcodes: Vec<_> = instructions.iter().map(|(_, opcode, _)| opcode.as_str()).collect();
    let returns = instructions.iter().rfind(|(_, opcode, _)| opcode.starts_with("ret")).expect("it returns").0;
    let jumps: Vec<_> =
        instructions.iter().filter(|(_, opcode, _)| opcode.starts_with('j') && opcode != "jmp").collect();
    println!("{function}: {} instructions, {} conditional jumps", opcodes.len(), jumps.len());
    assert!(opcodes.len() > 100, "the function was inlined away");
    assert!(!opcodes.iter().any(|code| code.starts_with("div") || code.starts_with("idiv")));
    assert_eq!(opcodes.iter().filter(|opcode| opcode.starts_with("ret")).count(), 1);
    // A failed bounds check leaves for the cold end of the function, behind its return.
    let leaves = |target: &str| u64::from_str_radix(target, 16).is_ok_and(|target| target > returns);
    assert!(jumps.len() <= bounds_checks && jumps.iter().all(|(_, _, target)| leaves(target)), "{jumps:#?}");
    opcodes.len()
}
