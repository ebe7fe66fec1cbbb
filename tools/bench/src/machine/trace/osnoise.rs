//! The tracer osnoise (Documentation/trace/osnoise-tracer.rst): each interruption with its length, non-maskable ones too.

use std::fs;
use std::path::Path;

const NAME: &str = "osnoise";
/// Options of the tracer, of all buffers together.
const OPTIONS: &str = "osnoise/options";
/// Without it the tracer starts no threads, which would take the CPUs that are measured (Linux 6.3).
const WORKLOAD: &str = "OSNOISE_WORKLOAD";
const EVENTS: [&str; 4] = ["irq_noise", "softirq_noise", "thread_noise", "nmi_noise"];

/// The tracer in one buffer.
#[derive(Debug)]
pub(super) struct Osnoise {
    had_workload: bool,
}

impl Osnoise {
    /// Starts the tracer in the buffer `instance` of the tracefs at `top`.
    ///
    /// # Errors
    /// Why it is not used, in words. Nothing is changed then.
    pub(super) fn start(top: &Path, instance: &Path) -> Result<Self, String> {
        let tracers = fs::read_to_string(top.join("available_tracers")).unwrap_or_default();
        if !tracers.split_whitespace().any(|tracer| tracer == NAME) {
            return Err(format!("this kernel has no tracer osnoise, only {}", tracers.trim()));
        }
        let options = fs::read_to_string(top.join(OPTIONS)).unwrap_or_default();
        let mut options = options.split_whitespace().filter(|option| option.ends_with(WORKLOAD));
        let had_workload = match options.next() {
            Some(option) => option == WORKLOAD,
            None => return Err(format!("this kernel's osnoise has no option {WORKLOAD}: it would take the CPUs")),
        };
        let osnoise = Self { had_workload };
        let started = fs::write(top.join(OPTIONS), format!("NO_{WORKLOAD}")).and_then(|()| {
            fs::write(instance.join("current_tracer"), NAME)?;
            EVENTS.iter().try_for_each(|event| fs::write(instance.join(format!("events/{NAME}/{event}/enable")), "1"))
        });
        match started {
            Ok(()) => Ok(osnoise),
            Err(error) => {
                osnoise.stop(top, instance);
                Err(format!("the tracer osnoise does not start: {error}"))
            }
        }
    }

    /// Stops it and puts the option back.
    pub(super) fn stop(&self, top: &Path, instance: &Path) {
        // The buffer goes with its tracer.
        let _ = fs::write(instance.join("current_tracer"), "nop");
        if self.had_workload {
            let _ = fs::write(top.join(OPTIONS), WORKLOAD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Files as tracefs has them, as far as the tracer is concerned.
    fn tracefs(name: &str, tracers: &str, options: Option<&str>) -> PathBuf {
        let top = std::env::temp_dir().join(format!("truetick-osnoise-{name}-{}", std::process::id()));
        for event in EVENTS {
            fs::create_dir_all(top.join(format!("instances/a/events/osnoise/{event}"))).unwrap();
        }
        fs::create_dir_all(top.join("osnoise")).unwrap();
        fs::write(top.join("available_tracers"), tracers).unwrap();
        options.map_or(Ok(()), |options| fs::write(top.join(OPTIONS), options)).unwrap();
        top
    }

    fn try_out(name: &str, tracers: &str, options: Option<&str>) -> (Result<String, String>, String) {
        let top = tracefs(name, tracers, options);
        let instance = top.join("instances/a");
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let started = Osnoise::start(&top, &instance).map(|osnoise| {
            let state = [read(instance.join("current_tracer")), read(top.join(OPTIONS))].join(" ");
            assert!(EVENTS.iter().all(|event| read(instance.join(format!("events/osnoise/{event}/enable"))) == "1"));
            osnoise.stop(&top, &instance);
            state
        });
        let after = [read(instance.join("current_tracer")), read(top.join(OPTIONS))].join(" ");
        fs::remove_dir_all(&top).unwrap();
        (started, after)
    }

    #[test]
    fn a_kernel_with_it_runs_it_without_threads_and_gets_its_option_back() {
        let (started, after) =
            try_out("on", "timerlat osnoise function nop", Some("NO_DEFAULTS OSNOISE_WORKLOAD NO_PANIC"));
        assert_eq!(
            (started.unwrap().as_str(), after.as_str()),
            ("osnoise NO_OSNOISE_WORKLOAD", "nop OSNOISE_WORKLOAD")
        );
        let (_, after) = try_out("off", "osnoise nop", Some("NO_DEFAULTS NO_OSNOISE_WORKLOAD"));
        assert_eq!(after, "nop NO_OSNOISE_WORKLOAD", "it was off before");
    }

    #[test]
    fn a_kernel_without_it_says_what_it_has() {
        let (started, _) = try_out("none", "blk function nop\n", None);
        assert_eq!(started.unwrap_err(), "this kernel has no tracer osnoise, only blk function nop");
        let (started, after) = try_out("old", "osnoise nop", Some("NO_DEFAULTS"));
        assert!(started.unwrap_err().contains("it would take the CPUs"));
        assert_eq!(after, " NO_DEFAULTS", "nothing is changed");
    }
}
