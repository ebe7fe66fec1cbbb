use super::*;

#[test]
fn nine_tenths_of_the_control_group_are_the_bound_of_memory_unless_another_is_configured() {
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    let group_max = Some(1_000 << 20);
    let bytes = |config: &TurnConfig, group_max| config.memory_bound_in(group_max).map(|size| size.bytes);
    assert_eq!((bytes(&config, group_max), bytes(&config, None)), (Some(900 << 20), None));
    config.memory_max = Some(MemoryBound::At(MemorySize { bytes: 2_000 << 20 }));
    assert_eq!((bytes(&config, group_max), bytes(&config, None)), (Some(2_000 << 20), Some(2_000 << 20)));
    config.memory_max = Some(MemoryBound::Off);
    assert_eq!((bytes(&config, group_max), bytes(&config, None)), (None, None));
}
