//! The answer's words, on results that are made up.

use super::*;
use crate::report::ring::FloorQuantile;

fn exactly(value: f64) -> Estimate {
    Estimate { value, low: value - 1.0, high: value + 1.0 }
}

fn parts(overlap: f64) -> Parts {
    Parts {
        floor_ns: exactly(160.0),
        ring_ns: [exactly(25.0), exactly(25.0 + overlap)],
        evaluator_ns: [exactly(15.0 - overlap), exactly(15.0)],
        overlap_ns: exactly(overlap),
        whole_ns: exactly(200.0),
        noise_ns: 2.0,
        adds_up: overlap == 0.0,
    }
}

/// The ring above its floor by as much at each quantile.
fn floor(above: [f64; 4]) -> FloorComparison {
    let quantiles = ["p1", "p10", "p50", "p90"].into_iter().zip(above);
    let quantiles = quantiles.map(|(name, above)| FloorQuantile::new(name, exactly(160.0), exactly(above), 2.0));
    FloorComparison::new("made up", quantiles.collect())
}

fn result(parts: Option<Parts>) -> WhyResult {
    let timer = StallGroup { name: Some("local timer".to_owned()), count: 300, total_ns: 900_000.0, max_ns: 9_000.0 };
    let unnamed = StallGroup { name: None, count: 10, total_ns: 100_000.0, max_ns: 20_000.0 };
    WhyResult {
        truetick: "why",
        quick: false,
        resamples: 1,
        environment: Environment::default(),
        warnings: Vec::new(),
        cpus: [0, 3],
        placement: "same_cache".to_owned(),
        runs: 40,
        p50_ns: exactly(200.0),
        parts,
        floor: Some(floor([25.0; 4])),
        distance: Some("same_cache"),
        others: Vec::new(),
        gate_ns: exactly(2_500.0),
        stalls: Stalls {
            threshold_ns: 1_000.0,
            seconds: 1.0,
            events: 1_000_000,
            names: vec![timer, unnamed],
            ..Stalls::default()
        },
        changes: vec![Change {
            name: "fifo".to_owned(),
            what: "give <b>both</b> threads SCHED_FIFO".to_owned(),
            p50_gain_ns: Some(exactly(12.0)),
            is_none: false,
            stalls: Some([StallRate { count: 310, seconds: 1.0 }, StallRate { count: 100, seconds: 1.0 }]),
            refused: None,
        }],
        advice: vec![Advice::new("turbo", "on", "nothing")],
    }
}

#[test]
fn parts_that_add_up_are_a_sum() {
    assert_eq!(
        result(Some(parts(0.0))).sentence(),
        "200 ns at the median from CPU 0 to CPU 3: 80 % is the distance between the cores (160 ns for one cache line), \
         25 ns the ring, 15 ns the evaluator."
    );
}

#[test]
fn rows_of_the_parts_sum_to_the_row_of_all() {
    for overlap in [0.0, -9.0, 12.5] {
        let mut text = Vec::new();
        result(Some(parts(overlap))).write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let table = text.split_once("part of the median").unwrap().1.split_once("\n\n").unwrap().0;
        let figure = |line: &str| line.split("  ").find_map(|cell| cell.trim().parse::<f64>().ok());
        let figures: Vec<f64> =
            table.lines().filter(|line| !line.contains("for comparison")).filter_map(figure).collect();
        let (all, parts) = figures.split_last().unwrap();
        assert_eq!((*all, parts.iter().sum::<f64>()), (200.0, 200.0), "{table}");
    }
}

#[test]
fn parts_that_overlap_have_bounds() {
    let sentence = result(Some(parts(-9.0))).sentence();
    assert!(sentence.ends_with("16 to 25 ns the ring, 15 to 24 ns the evaluator, which overlap."), "{sentence}");
}

#[test]
fn a_part_within_the_noise_has_no_figure() {
    let noisy = Parts { noise_ns: 30.0, ..parts(0.0) };
    let sentence = result(Some(noisy)).sentence();
    assert!(sentence.contains("the ring no more than the noise of 30 ns"), "{sentence}");
    assert!(result(None).sentence().contains("the cores were moved during most rounds"));
}

#[test]
fn a_ring_below_its_floor_has_no_parts_and_names_the_quantile() {
    for (failing, name) in ["p1", "p10", "p50", "p90"].into_iter().enumerate() {
        let mut result = result(Some(parts(0.0)));
        let mut above = [3.0; 4];
        above[failing] = -7.5;
        result.floor = Some(floor(above));
        let sentence = result.sentence();
        let end = format!("is no floor here: the ring lies below it at {name} by 7.5 ns (A/A control 2.0), made up.");
        assert!(sentence.ends_with(&end) && !sentence.contains('%'), "{sentence}");
        let mut text = Vec::new();
        result.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!(": FAILS at {name} by 7.5 ns")), "{text}");
        let mut json = Vec::new();
        result.write_json(&mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["floor"]["verdict"], "fails");
        assert_eq!(json["floor"]["quantiles"][failing]["is_held"], false);
    }
}

fn other(cpus: [usize; 2], distance: &'static str, floor: FloorComparison) -> PairAnswer {
    PairAnswer {
        cpus,
        distance,
        placement: distance.to_owned(),
        runs: 30,
        p50_ns: Some(exactly(200.0)),
        parts: Some(parts(0.0)),
        floor: Some(floor),
    }
}

#[test]
fn each_other_distance_has_a_line_in_text_page_and_json() {
    let mut result = result(Some(parts(0.0)));
    result.others = vec![other([0, 8], "siblings", floor([3.0; 4])), other([0, 5], "across_caches", floor([-9.0; 4]))];
    result.others[0].p50_ns = Some(exactly(199.0));
    let siblings = "At another distance (siblings): 199 ns at the median from CPU 0 to CPU 8: 80 % is the distance";
    let across = "At another distance (across caches): 200 ns at the median from CPU 0 to CPU 5; its parts are unknown";
    let (mut text, mut html, mut json) = (Vec::new(), Vec::new(), Vec::new());
    result.write_text(&mut text).unwrap();
    result.write_html("", &mut html).unwrap();
    result.write_json(&mut json).unwrap();
    for output in [&text, &html, &json] {
        let output = String::from_utf8_lossy(output);
        assert!(output.contains(siblings) && output.contains(across), "{output}");
    }
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["others"][1]["distance"], &json["others"][0]["runs"]), (&"across_caches".into(), &30.into()));
    let below = result.below_floor();
    assert!(
        below.len() == 1 && below[0].starts_with("p1 by 9.0 ns") && below[0].ends_with("(CPUs 0 and 5)"),
        "{below:?}"
    );
}

#[test]
fn two_cpus_are_said_to_be_one_placement() {
    let mut result = result(Some(parts(0.0)));
    result.environment.machine.cores = 2;
    assert_eq!(result.placements(), ["This process has two CPUs, so there is one placement: same cache."]);
    result.environment.machine.cores = 4;
    result.distance = None;
    let one = ["All CPUs of this process have one distance, as the kernel knows it: unknown."];
    assert_eq!(result.placements(), one);
}

#[test]
fn the_share_without_a_name_is_counted() {
    let stalls = result(None).stalls;
    assert_eq!(stalls.named_share(), Some(0.9));
    assert_eq!(
        stalls.sentence(),
        "310 events a second took more than 1 us, 0.1 % of the time; 90 % of that time has a name, first of all local timer."
    );
    let quiet = Stalls { threshold_ns: 1_000.0, seconds: 1.0, events: 5, ..Stalls::default() };
    assert_eq!(quiet.sentence(), "No event of 5 took more than 1 us.");
    assert!(Stalls { events: 0, ..quiet }.sentence().contains("too busy"));
}

#[test]
fn rates_differ_beyond_three_deviations() {
    let rate = |count| StallRate { count, seconds: 2.0 };
    assert!(rate(400).differs(&rate(300)));
    assert!(!rate(400).differs(&rate(370)));
    assert!(!rate(0).differs(&rate(0)));
}

#[test]
fn the_page_and_the_picture_are_whole() {
    let result = result(Some(parts(0.0)));
    let svg = result.svg().unwrap();
    for text in ["one cache line 160 ns", "local timer", "without a name", "90 %, 300 times"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    let mut html = Vec::new();
    result.write_html(&svg, &mut html).unwrap();
    let html = String::from_utf8(html).unwrap();
    assert!(html.contains("give &lt;b&gt;both&lt;/b&gt; threads") && !html.contains("<b>both"));
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["changes"][0]["stalls"][1]["count"], 100);
    assert_eq!(data["answer"].as_str().map(|answer| answer.starts_with("200 ns at the median")), Some(true));
    let mut text = Vec::new();
    result.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("-12.0 ns [-13.0, -11.0]") && text.contains("310 to 100\n"), "{text}");
}
