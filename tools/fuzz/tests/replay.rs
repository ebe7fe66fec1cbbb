//! Replays every corpus on any toolchain.

use fuzz::{Target, corpus};

const INPUTS_MIN: usize = 16;

fn replay(name: &str, target: Target) {
    let inputs = corpus::read(name).expect(name);
    assert!(inputs.len() >= INPUTS_MIN, "{name} has only {} inputs", inputs.len());
    inputs.iter().for_each(|input| target(input));
}

macro_rules! replay {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), fuzz::$name::run);
        })+
    };
}

replay! { attributes codec files frames framing http import inflate policy proxy recordings rows server }
