//! CPU time of a datagram over veth devices, that of what receives for the server included.

use super::{BOOTSTRAP, Cost, Lines, Run, length, mean, order, origin_of_runs, pairs};
use crate::report::{Runs, interval, verdict};

/// truetick with its kernel path.
const OURS: &str = "truetick_kernel";
/// Aims at it: a part of another server's cost in the same rounds and row, with the word for that server.
const AIMS: [(&str, f64, &str); 3] =
    [("coturn", 0.35, "coturn"), ("truetick", 0.45, "sockets"), ("xdp_echo", 1.3, "XDP echo")];
/// Aim at 10,000 channels, as a part of 100.
const MANY_AIM: f64 = 1.6;
const MANY: u64 = 10_000;
const FEW: u64 = 100;
/// Also measured, without an aim.
const ECHO: &str = "echo";

/// Every server's cost of a datagram, and the ratios that have an aim.
pub(in crate::tables) fn lines(runs: &Runs) -> anyhow::Result<Lines> {
    let mut headings = vec!["row".to_owned(), "kernel path".to_owned()];
    headings.extend(AIMS.map(|(_, _, word)| word.to_owned()));
    headings.push("echo".to_owned());
    for (_, aim, word) in AIMS {
        headings.extend([format!("kernel path / {word}"), format!("aim {aim:.2}")]);
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for row in rows(runs) {
        let of = |server: &str| costs(runs, &row, server, "traffic");
        let ours = of(OURS);
        let mut cells = vec![format!("`{row}`"), figure(&ours)];
        cells.extend(AIMS.map(|(server, _, _)| figure(&of(server))));
        cells.push(figure(&of(ECHO)));
        cells.extend(AIMS.iter().flat_map(|(server, aim, _)| judged(&pairs(&ours, &of(server)), *aim)));
        lines.push(cells);
    }
    Ok(lines)
}

/// The cost with many channels against that with few, and what the program alone takes.
pub(in crate::tables) fn programs(runs: &Runs) -> anyhow::Result<Lines> {
    let aim = format!("aim {MANY_AIM:.2}");
    let headings =
        ["direction", "100 channels", "10,000 channels", "10,000 / 100", &aim, "program", "XDP echo's program"];
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for row in rows(runs).iter().filter(|row| length(row).last() == Some(&FEW)) {
        let many = row.replace("_100", &format!("_{MANY}"));
        let (few, many) = (costs(runs, row, OURS, "traffic"), costs(runs, &many, OURS, "traffic"));
        let mut cells = vec![format!("`{row}`"), figure(&few), figure(&many)];
        cells.extend(judged(&pairs(&many, &few), MANY_AIM));
        cells.extend([OURS, "xdp_echo"].map(|server| figure(&costs(runs, row, server, "program"))));
        lines.push(cells);
    }
    Ok(lines)
}

/// A ratio with its interval, and what an aim says of it; empty without runs.
fn judged(pairs: &[(f64, f64)], aim: f64) -> [String; 2] {
    let ratio = BOOTSTRAP.ratio(pairs);
    [interval(ratio, 3), ratio.map_or_else(String::new, |ratio| verdict(ratio, aim).to_owned())]
}

fn figure(costs: &[Cost]) -> String {
    if costs.is_empty() { String::new() } else { mean(costs) }
}

fn rows(runs: &Runs) -> Vec<String> {
    let mut names: Vec<String> = runs.runs.iter().filter_map(|run| run.get("row")).cloned().collect();
    names.sort_by_key(|name| (order(name.trim_start_matches("veth_")), length(name)));
    names.dedup();
    names
}

fn costs(runs: &Runs, row: &str, server: &str, kind: &str) -> Vec<Cost> {
    let is_wanted = |run: &&Run| {
        let has = |key: &str, value: &str| run.get(key).is_some_and(|it| it == value);
        has("row", row) && has("contestant", server) && has("kind", kind)
    };
    runs.runs.iter().filter(is_wanted).filter_map(cost).collect()
}

fn cost(run: &Run) -> Option<Cost> {
    let figure = |key: &str| run.get(key)?.parse::<f64>().ok();
    let count = figure("delivered").filter(|delivered| *delivered > 0.0)?;
    Some(Cost { sum: figure("cpu_ns")? + figure("deferred_ns")?, count, round: run.get("round")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::{lines, programs};
    use crate::report::Runs;

    /// Two rounds in which the kernel path costs a fourth of coturn's, half of the sockets' and 1.25 of the echo's.
    fn runs() -> Runs {
        let mut text = String::from("# machine: A, 2 CPUs, kernel 6\n# rustc 1.95.0\n");
        text += "date,commit,row,contestant,round,kind,delivered,cpu_ns,deferred_ns\n";
        for round in [0, 1] {
            for (row, times) in [("veth_to_peer_160_100", 1), ("veth_to_peer_160_10000", 2)] {
                for (server, cpu, deferred) in [
                    ("truetick_kernel", 0, 1_000),
                    ("truetick", 1_500, 500),
                    ("coturn", 3_000, 1_000),
                    ("xdp_echo", 0, 800),
                ] {
                    let (cpu, deferred) = (cpu * times, deferred * times);
                    text += &format!("2026,a,{row},{server},{round},traffic,10,{cpu}0,{deferred}0\n");
                }
                text += &format!("2026,a,{row},truetick_kernel,{round},program,10,2500,0\n");
            }
        }
        Runs::parse(&text).unwrap()
    }

    #[test]
    fn a_datagram_costs_what_the_server_and_its_receiver_use() {
        let text = lines(&runs()).unwrap().markdown();
        assert!(text.contains("| `veth_to_peer_160_100` | 1,000 | 4,000 | 2,000 | 800 |  | 0.250 "), "{text}");
        assert!(text.contains(" | reached | 0.500 [0.500, 0.500] | missed | 1.250 "), "{text}");
    }

    #[test]
    fn many_channels_are_compared_with_few() {
        let text = programs(&runs()).unwrap().markdown();
        let row = "| `veth_to_peer_160_100` | 1,000 | 2,000 | 2.000 [2.000, 2.000] | missed | 250 |  |";
        assert!(text.contains(row), "{text}");
    }
}
