//! Packs the compiled programs, which are large by what they say of their lines and types.

#[path = "build/pack.rs"]
mod pack;

fn main() -> std::io::Result<()> {
    pack::pack(&["bpf/paths.bpf.o", "bpf/steer.bpf.o"])
}
