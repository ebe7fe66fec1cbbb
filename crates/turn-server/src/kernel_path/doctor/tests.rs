use tt_path::Interface;
use tt_path::drivers::Device;

use super::*;

fn survey_of(driver: &str) -> Survey {
    let interface = Interface { name: "eth9".to_owned(), index: 9, mac: [2, 0, 0, 0, 0, 9], redirects: false };
    Survey {
        device: Device { interface, driver: Some(driver.to_owned()), mtu: 1_500 },
        is_up: true,
        offloads: Offloads::default(),
        program: None,
        vlans: Vec::new(),
        other_end: None,
    }
}

fn results(survey: Survey, rejected: Option<&str>) -> Vec<&'static str> {
    InterfaceReport::of(survey, &[], None, rejected).plans.into_iter().map(|plan| plan.result).collect()
}

#[test]
fn plans_are_those_of_the_driver_unless_something_keeps_the_program_off() {
    assert_eq!(results(survey_of("ice"), None), ["native", "native", "generic"]);
    assert_eq!(results(survey_of("veth"), None), ["sockets", "native", "generic"]);
    assert_eq!(results(survey_of("bridge"), None), ["sockets", "sockets", "generic"]);
    assert_eq!(results(survey_of("ice"), Some("the kernel denies BPF")), ["sockets"; 3]);
    let program = AttachedProgram { id: 7, name: None, mode: "native", holders: Vec::new() };
    let taken = Survey { program: Some(program), ..survey_of("ice") };
    assert!(advice(&taken)[0].starts_with("ip link set dev eth9 xdp off"));
    assert_eq!(results(taken, None), ["sockets"; 3]);
    let mut tunnel = survey_of("ice");
    tunnel.device.interface.mac = [0; 6];
    assert_eq!(results(tunnel, None), ["sockets"; 3]);
}

#[test]
fn each_advice_is_a_command_for_what_is_wrong() {
    assert_eq!(advice(&survey_of("ice")), [] as [&str; 0]);
    let lro = Offloads { lro: Some(true), ..Offloads::default() };
    let mut wrong = Survey { is_up: false, offloads: lro, vlans: vec!["eth9.5".to_owned()], ..survey_of("ice") };
    wrong.device.mtu = 9_000;
    let texts = advice(&wrong);
    let starts = ["ip link set dev eth9 up", "ethtool -K eth9 lro off", "ip link set dev eth9 mtu", "leave eth9"];
    assert_eq!(texts.len(), starts.len(), "{texts:?}");
    assert!(texts.iter().zip(starts).all(|(text, start)| text.starts_with(start)), "{texts:?}");
    let other = |gro, tx| {
        let here = ("eth8".to_owned(), Offloads { gro: Some(gro), tx_checksum: Some(tx), lro: None });
        advice(&Survey { other_end: Some(OtherEnd { index: 8, here: Some(here) }), ..survey_of("veth") })
    };
    assert_eq!(other(true, false), [] as [&str; 0]);
    assert_eq!(other(false, true), ["ethtool -K eth8 gro on tx off: the other end of eth9"]);
    assert_eq!(other(true, true), ["ethtool -K eth8 tx off: the other end of eth9"]);
}

#[test]
fn versions_are_compared_as_numbers() {
    for (release, is_enough) in
        [("5.18.0", true), ("5.9.1", false), ("6.1.0-13-amd64", true), ("5.17", false), ("", false)]
    {
        assert_eq!(is_new_enough(release), is_enough, "{release}");
    }
}

#[test]
fn only_a_program_of_this_server_with_a_process_counts_as_usable() {
    let with = |name: &str, holders: &[(&str, u32)]| {
        let holders = holders.iter().map(|(name, process)| ((*name).to_owned(), *process)).collect();
        let program = AttachedProgram { id: 7, name: Some(name.to_owned()), mode: "native", holders };
        InterfaceReport::of(Survey { program: Some(program), ..survey_of("ice") }, &[], None, None).is_usable()
    };
    assert!(with("paths", &[("truetick", 4)]) && !with("paths", &[]) && !with("other", &[("other", 4)]));
}
