use super::*;

/// `/proc/stat` (its lines of CPUs and interrupts) and `/proc/pressure/cpu` at the two ends of a window.
struct Recorded {
    wall: Duration,
    stat: [&'static str; 2],
    pressure: [&'static str; 2],
}

/// A machine with two CPUs on which nothing runs but daemons.
const QUIET: Recorded = Recorded {
    wall: Duration::from_millis(2_006),
    stat: [
        "cpu  176061 17054 47744 29845 812 0 491 472 0 0
cpu0 85655 7953 24946 17110 189 0 192 219 0 0
cpu1 90405 9100 22797 12735 622 0 298 252 0 0
intr 1232387 0 0 0
ctxt 2180005
",
        "cpu  176061 17054 47744 30244 812 0 491 472 0 0
cpu0 85655 7953 24947 17309 189 0 192 219 0 0
cpu1 90405 9100 22797 12935 622 0 298 252 0 0
intr 1232455 0 0 0
ctxt 2180105
",
    ],
    pressure: [
        "some avg10=16.11 avg60=31.21 avg300=58.83 total=882837933
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
        "some avg10=13.19 avg60=30.18 avg300=58.43 total=882842089
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
    ],
};

/// The same machine while one process spins: no task waits.
const ONE_SPINS: Recorded = Recorded {
    wall: Duration::from_millis(2_007),
    stat: [
        "cpu  65491 16998 10669 20394 519 0 128 199 0 0
cpu0 32667 7922 5019 11438 89 0 7 84 0 0
cpu1 32823 9076 5649 8956 430 0 121 115 0 0
intr 495267 0 0 0
ctxt 786619
",
        "cpu  65690 16998 10672 20593 519 0 128 201 0 0
cpu0 32667 7922 5020 11636 89 0 7 86 0 0
cpu1 33022 9076 5651 8956 430 0 121 115 0 0
intr 495871 0 0 0
ctxt 786699
",
    ],
    pressure: [
        "some avg10=34.06 avg60=76.46 avg300=57.78 total=325975901
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
        "some avg10=27.89 avg60=73.96 avg300=57.38 total=325976493
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
    ],
};

/// The same machine while compilers run.
const COMPILERS_RUN: Recorded = Recorded {
    wall: Duration::from_millis(2_022),
    stat: [
        "cpu  61476 14292 10232 19506 515 0 127 176 0 0
cpu0 30568 7065 4841 10552 84 0 7 73 0 0
cpu1 30908 7226 5391 8953 430 0 120 103 0 0
intr 470564 0 0 0
ctxt 761327
",
        "cpu  61639 14486 10279 19506 515 0 127 177 0 0
cpu0 30690 7127 4859 10552 84 0 7 73 0 0
cpu1 30949 7358 5419 8953 430 0 120 104 0 0
intr 471905 0 0 0
ctxt 763055
",
    ],
    pressure: [
        "some avg10=94.07 avg60=89.55 avg300=56.39 total=298643735
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
        "some avg10=93.88 avg60=89.67 avg300=56.64 total=300501539
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
",
    ],
};

fn reason(recorded: &Recorded) -> Option<String> {
    let [before, after] = [0, 1].map(|end| Readings::of_machine(recorded.stat[end], recorded.pressure[end]));
    busy(&after.since(&before), recorded.wall)
}

#[test]
fn a_quiet_machine_is_measured_however_busy_it_was_before() {
    assert_eq!(reason(&QUIET), None);
}

#[test]
fn one_process_that_spins_makes_a_machine_busy() {
    assert_eq!(reason(&ONE_SPINS).as_deref(), Some("other processes use 1.002 CPUs (at most 0.1)"));
}

#[test]
fn each_exceeded_bound_is_named() {
    let expected = "other processes use 1.995 CPUs (at most 0.1), CPU pressure is 91.88 % (at most 5)";
    assert_eq!(reason(&COMPILERS_RUN).as_deref(), Some(expected));
}

/// A window of two seconds on two CPUs: 400 steps of the kernel's clock, of which `user` and `steal` are not idle.
fn window(user: u64, steal: u64, pressure_us: u64) -> Option<String> {
    let stat = format!("cpu  {user} 0 0 {} 0 0 0 {steal} 0 0\ncpu0 0\ncpu1 0\nintr 5\n", 400 - user - steal);
    let pressure = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure_us}\n");
    busy(&Readings::of_machine(&stat, &pressure), Duration::from_secs(2))
}

#[test]
fn each_bound_is_exceeded_by_the_next_step_only() {
    assert_eq!(window(20, 2, 100_000), None);
    assert_eq!(window(21, 2, 100_000).as_deref(), Some("other processes use 0.105 CPUs (at most 0.1)"));
    assert_eq!(window(20, 3, 100_000).as_deref(), Some("steal is 0.75 % (at most 0.5)"));
    assert_eq!(window(20, 2, 101_000).as_deref(), Some("CPU pressure is 5.05 % (at most 5)"));
}

#[test]
fn a_kernel_without_pressure_readings_is_judged_by_the_rest() {
    let readings = Readings::of_machine(COMPILERS_RUN.stat[0], "");
    assert_eq!(busy(&readings.since(&readings), Duration::from_secs(2)), None);
}

#[test]
fn a_busy_machine_has_another_status_than_a_failure() {
    let busy = || anyhow::Error::from(BusyError { reason: "other processes use 2.000 CPUs".to_owned() });
    assert_eq!((status(&busy()), status(&busy().context("cannot measure"))), (3, 3));
    assert_eq!(status(&anyhow::anyhow!("another bench is running")), 1);
}
