//! Settings of the whole machine that move latencies: what they are, and what they could be. They are read, not changed.

use std::collections::BTreeSet;
use std::fs;

use crate::machine::cpu_list;
use crate::report::Environment;
use crate::report::why::{Advice, Stalls};

/// Interrupts that are named.
const INTERRUPTS_LISTED: usize = 4;

/// Reads the settings that concern `cpus`.
pub(super) fn read(cpus: [usize; 2], stalls: &Stalls, environment: &Environment) -> Vec<Advice> {
    let mut advice = vec![governor(cpus[1]), turbo(), isolation(cpus), interrupts(stalls), siblings(cpus)];
    advice.extend(steal(environment));
    advice
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn governor(cpu: usize) -> Advice {
    let now = line(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let action = match now.as_deref() {
        Some("performance") => "nothing: it is what low latency needs",
        Some(_) => "`cpupower frequency-set --governor performance`",
        None => "nothing from here: the hypervisor or the firmware decides",
    };
    Advice::new("frequency governor", now.as_deref().unwrap_or("not visible"), action)
}

fn turbo() -> Advice {
    let boost = line("/sys/devices/system/cpu/cpufreq/boost").map(|on| on == "1");
    let turbo = line("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == "0");
    match boost.or(turbo) {
        Some(true) => Advice::new("turbo", "on", "off where figures of two runs are compared; on where speed counts"),
        Some(false) => Advice::new("turbo", "off", "on where speed counts more than figures that repeat"),
        None => Advice::new("turbo", "not visible", "nothing from here: the hypervisor or the firmware decides"),
    }
}

fn isolation(cpus: [usize; 2]) -> Advice {
    let isolated = cpu_list(&line("/sys/devices/system/cpu/isolated").unwrap_or_default());
    let tickless = cpu_list(&line("/sys/devices/system/cpu/nohz_full").unwrap_or_default());
    let has = |list: &BTreeSet<usize>| cpus.iter().all(|cpu| list.contains(cpu));
    let kept = |is: bool, yes: &str, no: &str| if is { yes.to_owned() } else { no.to_owned() };
    let now = format!(
        "{}, {}",
        kept(has(&isolated), "both isolated", "other threads may run on them"),
        kept(has(&tickless), "no timer tick", "a timer tick on each")
    );
    let [one, other] = cpus;
    let action = if has(&isolated) && has(&tickless) {
        "nothing".to_owned()
    } else {
        format!(
            "boot with isolcpus={one},{other} nohz_full={one},{other} rcu_nocbs={one},{other}, or an isolated cpuset"
        )
    };
    Advice::new("isolation of both CPUs", &now, &action)
}

fn interrupts(stalls: &Stalls) -> Advice {
    if stalls.seconds <= 0.0 {
        return Advice::new(
            "interrupts of both CPUs",
            "not known: no event was watched",
            "run again on a quiet machine",
        );
    }
    let seconds = stalls.seconds;
    let per_s = |(name, count): &(String, u64)| format!("{name} {:.0}/s", *count as f64 / seconds);
    // A device's line begins with its number, one of the CPU's own with three letters.
    let is_device = |(name, _): &&(String, u64)| name.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let (devices, own): (Vec<_>, Vec<_>) = stalls.interrupts.iter().partition(is_device);
    let devices: Vec<_> = devices.into_iter().filter(|(_, count)| *count as f64 >= seconds).collect();
    let listed = |list: Vec<&(String, u64)>| list.into_iter().take(INTERRUPTS_LISTED).map(per_s).collect::<Vec<_>>();
    let action = if devices.is_empty() {
        "nothing for devices: none interrupts these CPUs once a second"
    } else {
        "write the mask of other CPUs to /proc/irq/N/smp_affinity of the devices; stop irqbalance first"
    };
    let now = [listed(devices), listed(own)].concat();
    let now = if now.is_empty() { "none, or not visible".to_owned() } else { now.join(", ") };
    Advice::new("interrupts of both CPUs", &now, action)
}

fn siblings([one, other]: [usize; 2]) -> Advice {
    let of = |cpu: usize| {
        cpu_list(&line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).unwrap_or_default())
    };
    let (of_one, of_other) = (of(one), of(other));
    if of_one.contains(&other) {
        return Advice::new(
            "hardware threads",
            "the two CPUs are threads of one core",
            "the shortest way there is; two cores where each needs a core's whole speed",
        );
    }
    if of_one.len() < 2 && of_other.len() < 2 {
        return Advice::new("hardware threads", "none visible", "nothing from here");
    }
    Advice::new(
        "hardware threads",
        "each CPU shares its core with another",
        "keep work off the other thread of each core",
    )
}

/// What a hypervisor took.
fn steal(environment: &Environment) -> Option<Advice> {
    let steal = environment.disturbance.steal_pct.filter(|pct| *pct > 0.0)?;
    let now = format!("{steal:.2} % of the CPUs' time");
    Some(Advice::new(
        "steal of the hypervisor",
        &now,
        "CPUs of your own: a dedicated host, or vCPUs that the host pins",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_advice_and_the_cpus_own_interrupts_have_none() {
        let stalls = |names: &[(&str, u64)]| Stalls {
            seconds: 2.0,
            interrupts: names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Stalls::default()
        };
        let own = interrupts(&stalls(&[("LOC", 500), ("25 virtio0", 1)]));
        assert_eq!((own.now.as_str(), own.action.starts_with("nothing")), ("LOC 250/s", true));
        let device = interrupts(&stalls(&[("LOC", 500), ("25 virtio0", 20)]));
        assert_eq!(device.now, "25 virtio0 10/s, LOC 250/s");
        assert!(device.action.contains("smp_affinity"));
    }
}
