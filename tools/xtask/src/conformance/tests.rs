use super::*;

const TEST: &str =
    "#[test]\nfn rfc_r001_r002_words() {}\n#[test]\n// why\nfn case_a01_words() {}\nfn case_a02_no_test() {}\n";

/// A list of all ids of `scope`, each inapplicable but for what `special` says.
fn list(scope: Scope, special: &[(usize, &str)]) -> String {
    let mut text = String::new();
    for (number, id) in (1..).zip(scope.ids()) {
        let settled = special.iter().find(|(of, _)| *of == number).map_or("inapplicable = \"why\"", |(_, line)| *line);
        text += &format!("[{id}]\nsection = \"s\"\nsays = \"r\"\n{settled}\n");
    }
    text
}

fn tree(rfc: &[(usize, &str)], cases: &[(usize, &str)]) -> Tree {
    let (rfc, cases, violations) = (list(LISTS[0], rfc), list(LISTS[1], cases), list(LISTS[2], &[]));
    Tree::of(&[
        ("rfc.toml", &rfc),
        ("cases.toml", &cases),
        ("faults.toml", &violations),
        ("crates/truetick/tests/x.rs", TEST),
    ])
}

fn words(tree: &Tree) -> Vec<String> {
    check(tree).iter().chain(&unlisted_tests(tree)).map(ToString::to_string).collect()
}

const BOTH: &str = "outside = [\"truetick::rfc_r001_r002_words\"]";
const CASE: (usize, &str) = (1, "outside = [\"truetick::case_a01_words\"]");

/// How many ids a list has.
fn ids_of(scope: &Scope) -> usize {
    scope.letters.iter().map(|(_, numbers)| numbers.clone().count()).sum()
}

fn all_ids() -> usize {
    LISTS.iter().map(ids_of).sum()
}

#[test]
fn names_carry_their_ids() {
    assert_eq!(LISTS[0].ids_in("rfc_r001_r116_words_r002"), ["R001", "R116"]);
    assert_eq!(LISTS[1].ids_in("case_a46_a47_words"), ["A46", "A47"]);
    assert_eq!(LISTS[0].ids_in("rfc_r092_rfc_r094_case_a59_words"), ["R092", "R094"]);
    assert_eq!(LISTS[1].ids_in("rfc_r092_rfc_r094_case_a59_words"), ["A59"]);
    assert_eq!(LISTS[1].ids_in("case_m31_m32_k02_words"), ["M31", "M32", "K02"]);
    assert_eq!(LISTS[1].ids_in("case_m1_words"), Vec::<String>::new());
    assert_eq!(LISTS[1].ids_in("a59_case"), Vec::<String>::new());
    assert_eq!(LISTS[0].ids_in("rfc5769_messages"), Vec::<String>::new());
    assert_eq!(LISTS[0].ids_in("rfc_r01_short"), Vec::<String>::new());
}

#[test]
fn a_complete_list_has_no_faults() {
    assert_eq!(words(&tree(&[(1, BOTH), (2, BOTH)], &[CASE])), Vec::<String>::new());
}

#[test]
fn reports_missing_strange_and_unlisted_ids() {
    let violations = words(&tree(&[(1, BOTH)], &[]));
    assert_eq!(violations.len(), 2, "{violations:?}");
    assert!(violations[0].ends_with("list truetick::rfc_r001_r002_words under R002 in rfc.toml"), "{violations:?}");
    let gone = "engine = [\"truetick::case_a02_no_test\"]";
    let violations = words(&tree(&[(1, BOTH), (2, BOTH)], &[CASE, (2, gone)]));
    assert_eq!(violations, ["cases.toml:5: A02: there is no test truetick::case_a02_no_test"]);
    let (short, cases) = (list(Scope { letters: &[('R', 1..=115)], ..LISTS[0] }, &[]), list(LISTS[1], &[]));
    let violations = words(&Tree::of(&[("rfc.toml", &short), ("cases.toml", &format!("{cases}[A85]\n"))]));
    assert_eq!(
        violations[..2],
        ["rfc.toml: R116 is missing".to_owned(), format!("cases.toml:{}: A85 is no id", ids_of(&LISTS[1]) * 4 + 1)]
    );
    let twice = list(LISTS[0], &[]) + "[R001]\n";
    assert!(words(&Tree::of(&[("rfc.toml", &twice)]))[0].contains("duplicate key"));
}

#[test]
fn a_test_elsewhere_is_not_from_outside() {
    let mut tree = tree(&[(1, BOTH), (2, BOTH)], &[CASE]);
    tree.files[3].path = "crates/truetick/src/x.rs".to_owned();
    assert_eq!(words(&tree).len(), 3);
}

#[test]
fn a_section_that_no_source_cites_is_a_fault() {
    let mut tree = tree(&[(1, BOTH), (2, BOTH)], &[CASE]);
    tree.files[0].text = tree.files[0].text.replacen("section = \"s\"", "section = \"RFC 8489 section 5\"", 1);
    assert_eq!(words(&tree), ["rfc.toml:1: R001: no source cites RFC 8489 section 5 where it is met"]);
    let text = "/// Reads (RFC 8489 section 5).\nfn read() {}\n".to_owned();
    tree.files.push(crate::tree::File::new("crates/x/src/lib.rs".to_owned(), text));
    assert_eq!(words(&tree), Vec::<String>::new());
}

#[test]
fn three_waivers_and_no_more() {
    let waiver = "waiver = \"why\"";
    let waived: Vec<_> = (3..=6).map(|number| (number, waiver)).collect();
    let with = |waived: &[_]| words(&tree(&[&[(1, BOTH), (2, BOTH)], waived].concat(), &[CASE]));
    assert_eq!((with(&waived[..3]).len(), with(&waived)), (0, vec!["rfc.toml: 4 waivers, at most 3".to_owned()]));
    assert_eq!(with(&[(3, "waiver = \"\"")]).len(), 1);
    assert_eq!(with(&[(3, "")]).len(), 1);
}

fn run(name: &str, result: TestResult, requirement: &str) -> TestRun {
    let [package, name, requirement] = ["truetick", name, requirement].map(str::to_owned);
    TestRun { package, name, result, requirement }
}

fn judged(tree: &Tree, tests: &[TestRun], is_complete: bool) -> Judgement {
    judge(tree, &Run { tests, is_complete }).unwrap()
}

#[test]
fn an_id_is_met_when_all_of_its_tests_passed() {
    use TestResult::{Failed, Passed, Reported, Skipped};
    let tree = tree(&[(1, BOTH), (2, BOTH)], &[CASE]);
    let both = run("words::rfc_r001_r002_words", Passed, "");
    let with = |result, requirement| judged(&tree, &[both.clone(), run("case_a01_words", result, requirement)], true);
    let met = with(Passed, "");
    assert_eq!((met.settled, met.unmet.len(), met.skipped.len()), (all_ids(), 0, 0));
    let failed = with(Failed, "");
    assert_eq!(
        (failed.settled, failed.unmet),
        (all_ids() - 1, vec!["A01: truetick::case_a01_words failed".to_owned()])
    );
    let skipped = with(Skipped, "captures");
    assert_eq!((skipped.settled, skipped.unmet.len(), skipped.skipped.len()), (all_ids() - 1, 0, 1));
    assert_eq!(skipped.skipped[0].requirement, "captures");
    assert_eq!(with(Reported, "").skipped[0].requirement, "machine");
}

#[test]
fn a_test_that_did_not_run_is_a_skip_only_if_suites_were_left_out() {
    let tree = tree(&[(1, BOTH), (2, BOTH)], &[CASE]);
    let both = [run("words::rfc_r001_r002_words", TestResult::Passed, "")];
    assert_eq!(judged(&tree, &both, true).unmet, ["A01: truetick::case_a01_words did not run"]);
    let partial = judged(&tree, &both, false);
    assert_eq!((partial.unmet.len(), partial.skipped.len(), partial.settled), (0, 1, all_ids() - 1));
}

#[test]
fn exceptions_and_open_ids_are_named() {
    let except = format!("{BOTH}\nexcept = \"over UDP\"");
    let tree = tree(&[(1, &except), (2, BOTH), (3, "open = \"not yet\"")], &[CASE]);
    let tests =
        [run("words::rfc_r001_r002_words", TestResult::Passed, ""), run("case_a01_words", TestResult::Passed, "")];
    let judgement = judged(&tree, &tests, true);
    assert_eq!(judgement.exceptions, ["R001: over UDP"]);
    assert_eq!(
        (judgement.settled, judgement.skipped[0].to_string()),
        (all_ids() - 1, "R003: open: not yet".to_owned())
    );
}
