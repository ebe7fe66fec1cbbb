//! Ratios of a file of runs, and what the aims say of them. Never a rate: there is no network card.

use bench::report::{Bootstrap, Estimate};

use super::rows;
use crate::record::{Record, Runs};

/// Setting: resamples per interval.
const RESAMPLES: u32 = 10_000;

/// Aims at `truetick_kernel`: a part of another server's cost in the same rounds and row.
const AIMS: [(&str, f64); 3] = [("xdp_echo", 1.3), ("truetick", 0.45), ("coturn", 0.35)];
const OURS: &str = "truetick_kernel";
/// 10,000 flows, as a part of 100.
const MANY_AIM: f64 = 1.6;

pub(crate) fn print(runs: &Runs, seed: u64) {
    let bootstrap = Bootstrap { resamples: RESAMPLES, seed };
    runs.notes.iter().for_each(|note| println!("{note}"));
    println!(
        "\nnanoseconds of CPU of the server and of what receives for it, for a datagram; ratios in the same rounds\n"
    );
    let names = rows(false).into_iter().map(super::Row::name);
    for row in names {
        let of = |contestant: &str| costs(runs, &row, contestant, "traffic");
        for contestant in super::ALL.map(super::Subject::name) {
            if let Some(mean) = bootstrap.ratio(&samples(&of(contestant))) {
                println!("{row:24} {contestant:16} {}", interval(mean, 0));
            }
        }
        for (base, aim) in AIMS {
            judge(&format!("{row} / {base}"), &paired(&of(OURS), &of(base)), aim, bootstrap);
        }
        let program = |contestant: &str| costs(runs, &row, contestant, "program");
        if let Some(ratio) = bootstrap.ratio(&paired(&program(OURS), &program("xdp_echo"))) {
            println!("{:56} no aim, {}", format!("{row} / xdp_echo, in the program"), interval(ratio, 3));
        }
    }
    for way in ["to_peer", "from_peer"] {
        let of = |flows: usize| costs(runs, &format!("veth_{way}_160_{flows}"), OURS, "traffic");
        judge(&format!("{way}, 10,000 flows / 100"), &paired(&of(super::MANY), &of(100)), MANY_AIM, bootstrap);
    }
}

fn judge(what: &str, pairs: &[(f64, f64)], aim: f64, bootstrap: Bootstrap) {
    let Some(ratio) = bootstrap.ratio(pairs) else { return };
    let word = bench::report::verdict(ratio, aim);
    println!("{what:56} aim {aim:.2}: {word}, {}", interval(ratio, 3));
}

/// Cost of a datagram, by round.
fn costs(runs: &Runs, row: &str, contestant: &str, kind: &str) -> Vec<(u64, f64)> {
    let is_wanted = |of: &&Record| of.row == row && of.contestant == contestant && of.kind == kind && of.delivered > 0;
    let cost = |of: &Record| (of.round, (of.cpu_ns + of.deferred_ns) as f64 / of.delivered as f64);
    runs.records.iter().filter(is_wanted).map(cost).collect()
}

fn samples(costs: &[(u64, f64)]) -> Vec<(f64, f64)> {
    costs.iter().map(|(_, cost)| (*cost, 1.0)).collect()
}

/// Both costs in the rounds that have both.
fn paired(ours: &[(u64, f64)], theirs: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let base = |round: u64| theirs.iter().find(|(of, _)| *of == round).map(|(_, cost)| *cost);
    ours.iter().filter_map(|(round, cost)| Some((*cost, base(*round)?))).collect()
}

fn interval(estimate: Estimate, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", estimate.value, estimate.low, estimate.high)
}

#[cfg(test)]
mod tests {
    use super::paired;

    #[test]
    fn costs_are_compared_within_their_round() {
        let ours = [(1, 10.0), (2, 20.0), (3, 30.0)];
        assert_eq!(paired(&ours, &[(3, 60.0), (1, 5.0)]), [(10.0, 5.0), (30.0, 60.0)]);
    }
}
