//! Pairs of CPUs by their distance, as the kernel knows it (Documentation/ABI/stable/sysfs-devices-system-cpu).

use std::collections::BTreeSet;
use std::fs;

use super::Placement;

/// What the kernel says of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Hardware threads of its core.
    pub siblings: BTreeSet<usize>,
    /// CPUs that share its last cache.
    pub last_cache: BTreeSet<usize>,
    /// Its socket.
    pub package: String,
}

impl Topology {
    /// Reads what is known of `cpu`; sets are empty where the kernel says nothing.
    #[must_use]
    pub fn read(cpu: usize) -> Self {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        let line = |path: &str| fs::read_to_string(format!("{folder}/{path}")).unwrap_or_default().trim().to_owned();
        let caches = (0..10).filter_map(|index| {
            let level: u32 = line(&format!("cache/index{index}/level")).parse().ok()?;
            Some((level, cpu_list(&line(&format!("cache/index{index}/shared_cpu_list")))))
        });
        Self {
            siblings: cpu_list(&line("topology/thread_siblings_list")),
            last_cache: caches.max_by_key(|(level, _)| *level).map(|(_, cpus)| cpus).unwrap_or_default(),
            package: line("topology/physical_package_id"),
        }
    }
}

/// Reads a list of CPUs as the kernel writes it: `0-2,5`.
#[must_use]
pub fn cpu_list(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<usize>().ok()?..=to.trim().parse::<usize>().ok()?)
    };
    let mut cpus = BTreeSet::new();
    cpus.extend(text.split(',').filter_map(range).flatten());
    cpus
}

/// The distance of two CPUs; `None` where the kernel does not say which CPUs share a cache.
#[must_use]
pub fn distance([one, other]: [usize; 2], topology: &dyn Fn(usize) -> Topology) -> Option<Placement> {
    let of_one = topology(one);
    if of_one.siblings.contains(&other) {
        Some(Placement::Siblings)
    } else if of_one.last_cache.contains(&other) {
        Some(Placement::SameCache)
    } else {
        (!of_one.last_cache.is_empty()).then_some(Placement::AcrossCaches)
    }
}

/// One pair for each distance that `cpus` have other than that of `main`; across caches one of two sockets, if there is one.
#[must_use]
pub fn pairs_at_other_distances(
    cpus: &[usize],
    main: [usize; 2],
    topology: &dyn Fn(usize) -> Topology,
) -> Vec<([usize; 2], Placement)> {
    let all =
        cpus.iter().flat_map(|one| cpus.iter().map(move |other| [*one, *other])).filter(|[one, other]| one < other);
    let all: Vec<([usize; 2], Placement)> = all.filter_map(|pair| Some((pair, distance(pair, topology)?))).collect();
    let of_main = distance(main, topology);
    let farther = |[one, other]: [usize; 2]| topology(one).package != topology(other).package;
    [Placement::Siblings, Placement::SameCache, Placement::AcrossCaches]
        .into_iter()
        .filter(|wanted| Some(*wanted) != of_main)
        .filter_map(|wanted| {
            let of_wanted = || all.iter().filter(move |(_, placement)| *placement == wanted).copied();
            of_wanted().find(|(pair, _)| farther(*pair)).or_else(|| of_wanted().next())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two caches of two cores of two threads: CPUs 0 to 7 are first threads, 8 to 15 second ones.
    fn two_sockets(cpu: usize) -> Topology {
        let core = cpu % 8;
        let cores_of_cache: Vec<usize> = (0..8).filter(|other| other / 2 == core / 2).collect();
        Topology {
            siblings: [core, core + 8].into(),
            last_cache: cores_of_cache.iter().flat_map(|core| [*core, core + 8]).collect(),
            package: (core / 4).to_string(),
        }
    }

    fn all_of_one_cache(cpu: usize) -> Topology {
        Topology { siblings: [cpu].into(), last_cache: [0, 1].into(), package: "0".to_owned() }
    }

    #[test]
    fn each_other_distance_has_one_pair() {
        let cpus: Vec<usize> = (0..16).collect();
        let across = pairs_at_other_distances(&cpus, [0, 15], &two_sockets);
        assert_eq!(across, [([0, 8], Placement::Siblings), ([0, 1], Placement::SameCache)]);
        let of_siblings = pairs_at_other_distances(&cpus, [3, 11], &two_sockets);
        assert_eq!(of_siblings, [([0, 1], Placement::SameCache), ([0, 4], Placement::AcrossCaches)], "two sockets");
        let one_socket = pairs_at_other_distances(&[0, 1, 2], [0, 1], &two_sockets);
        assert_eq!(one_socket, [([0, 2], Placement::AcrossCaches)]);
    }

    #[test]
    fn two_cpus_have_one_distance_and_an_unknown_one_is_none() {
        assert_eq!(pairs_at_other_distances(&[0, 1], [0, 1], &all_of_one_cache), []);
        assert_eq!(distance([0, 1], &all_of_one_cache), Some(Placement::SameCache));
        let silent = |_| Topology::default();
        assert_eq!(distance([0, 1], &silent), None);
        assert_eq!(pairs_at_other_distances(&[0, 1, 2], [0, 2], &silent), []);
    }

    #[test]
    fn reads_lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5").into_iter().collect::<Vec<_>>(), [0, 1, 2, 5]);
        assert!(cpu_list("").is_empty() && cpu_list("(null)").is_empty());
    }

    #[test]
    fn this_machine_knows_each_cpu_as_its_own_sibling() {
        let cpu = tt_os::cpu::available().unwrap()[0];
        let topology = Topology::read(cpu);
        assert!(topology.siblings.is_empty() || topology.siblings.contains(&cpu), "{topology:?}");
    }
}
