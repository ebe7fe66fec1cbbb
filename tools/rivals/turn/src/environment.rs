//! The environment of a result: machine, builds, settings, and what is not measured.

use std::process::Command;

use bench::harness::notes::Stamp;
use tt_os::machine::Machine;

use crate::campaign::{Campaign, Cores};
use crate::process;
use crate::rivals::{Places, RELAY_PORTS};
use crate::rows::WINDOW;
use crate::trial::WARM_UP;

/// Lines for the head of a result.
pub(crate) fn notes(stamp: &Stamp, campaign: &Campaign, places: &Places, cores: Cores) -> Vec<String> {
    let machine = Machine::read();
    let unknown = || "unknown".to_owned();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let core = |core: Option<usize>| core.map_or_else(|| "not pinned".to_owned(), |cpu| format!("CPU {cpu}"));
    let mut notes = vec![
        format!("run {}: commit {}, seed {}", stamp.date, stamp.commit, campaign.seed),
        format!(
            "machine: {}, {} CPUs, kernel {}, clock {}, governor {}",
            machine.cpu_model.unwrap_or_else(unknown),
            cores.count,
            machine.kernel.unwrap_or_else(unknown),
            machine.clocksource.unwrap_or_else(unknown),
            machine.governor.unwrap_or_else(|| if machine.hypervisor {
                "hypervisor: unknown".into()
            } else {
                unknown()
            }),
        ),
        format!("mitigations: {}", machine.mitigations.join("; ")),
        format!(
            "generator on {}, servers on {}, niceness {}, load before {}",
            core(cores.generator),
            core(cores.servers),
            process::niceness().map_or_else(unknown, |niceness| niceness.to_string()),
            load.trim()
        ),
        format!(
            "settings: {} rounds, {} ms a run after {} ms of warm-up, window {WINDOW}, servers in a new random order for \
             each row and round, processes fresh in each round",
            campaign.rounds,
            campaign.duration.as_millis(),
            WARM_UP.as_millis()
        ),
        format!("{}, profile release", output(Command::new("rustc").arg("--version"))),
    ];
    for contestant in &campaign.contestants {
        let version = contestant.version(places).unwrap_or_else(|reason| format!("absent: {reason}"));
        let line =
            contestant.command(places, RELAY_PORTS).map(|command| command_line(&command, places)).unwrap_or_default();
        notes.push(format!("{}: {version}: {line}", contestant.name()));
    }
    notes.push(
        "not measured: a network card or a wire (loopback only), hardware counters, cold caches, more than one core, \
         energy; receivers have no UDP_GRO, clients no UDP_SEGMENT but in the train rows"
            .into(),
    );
    notes
}

/// The command with paths of this machine shortened.
fn command_line(command: &Command, places: &Places) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let own = std::env::current_exe().unwrap_or_default();
    let line = line.replace(&own.display().to_string(), "turn-relay");
    let line = line.replace(&places.truetick.display().to_string(), "truetick");
    let line = line.replace(&format!("{}/", places.built.display()), "");
    line.replace(&format!("{}/", places.root.display()), "")
}

fn output(command: &mut Command) -> String {
    let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_else(|_| "unknown".into())
}
