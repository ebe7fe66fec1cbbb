//! The seed that is being played.

/// Names its seed as a failed one if playing it panics: in the engine, or in the world.
#[derive(Debug)]
pub struct Playing {
    /// The world, as `cargo xtask sim` calls it.
    pub world: &'static str,
    /// The seed.
    pub seed: u64,
}

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { world, seed } = self;
            let commit = std::env::var("TRUETICK_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
            println!("FAILED seed {seed} at commit {commit}: a panic");
            println!("again: cargo xtask sim {world} --seed {seed}");
        }
    }
}
