//! Sources that shake hands over TLS in a loop: the wait of others for a Binding does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustls::client::Resumption;

use testkit::{Requirement, measured, require, two_cpus};
use tt_os::cpu::{available, pin};
use tt_os::priority;

use crate::certificates::Certificates;
use crate::server::Server;
use crate::spray::probe;
use crate::stream_client::connect_tls;

const LOOPS: usize = 4;
const TIME: Duration = Duration::from_secs(5);

/// Returns the median wait of a Binding while `loops` sources shake hands, and the handshakes. The server has one CPU, its
/// clients have the other, where the loops leave the first place to the Bindings: a wait is for the server.
fn binding_p50(loops: usize, [outside, inside]: [usize; 2]) -> (Duration, u64) {
    let certificates = Certificates::new();
    let files = certificates.flags();
    let flags = [&["--listen", "127.0.0.1:0", "--workers", "1"][..], &files.each_ref().map(String::as_str)].concat();
    pin(inside).unwrap();
    let server = Server::start(&flags);
    pin(outside).unwrap();
    let mut config = (*certificates.client(rustls::ALL_VERSIONS, &[])).clone();
    config.resumption = Resumption::disabled();
    let (config, is_over, handshakes) = (Arc::new(config), AtomicBool::new(false), AtomicU64::new(0));
    let mut waits = thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                priority::lower(19).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    drop(connect_tls(server.tls[0], &config).unwrap());
                    handshakes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let probes = scope.spawn(|| probe(server.listen[0], &is_over));
        // Nothing comes: this is how the time passes.
        let (_to, nothing) = channel::<()>();
        assert!(nothing.recv_timeout(TIME).is_err());
        is_over.store(true, Ordering::Relaxed);
        probes.join().unwrap()
    });
    server.stop();
    waits.sort_unstable();
    (waits[waits.len() / 2], handshakes.load(Ordering::Relaxed))
}

/// The bound of the case: 1.5 times the median wait.
#[test]
fn four_sources_that_shake_hands_do_not_delay_a_binding() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = available().unwrap();
    let cpus = [cpus[0], cpus[cpus.len() - 1]];
    let ((idle, _), (busy, handshakes)) = (binding_p50(0, cpus), binding_p50(LOOPS, cpus));
    println!("Binding p50 {idle:?}; {busy:?} with {handshakes} handshakes in {TIME:?}");
    let times = busy.as_secs_f64() / idle.as_secs_f64();
    measured("TLS handshakes", format_args!("{times:.2} times the wait during {handshakes} handshakes in {TIME:?}"));
    assert!(handshakes > 100 && times <= 1.5, "{times:.2} times the wait");
}
