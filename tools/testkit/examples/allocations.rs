//! Makes many allocations at a TURN server, one after the other, and leaves them:
//! `allocations SERVER USER PASSWORD COUNT [FILE]`. The file gets how long each took, in microseconds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::turn_client::Client;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([server, user, password, count] | [server, user, password, count, _]) = &arguments[..] else {
        eprintln!("usage: allocations SERVER USER PASSWORD COUNT [FILE]");
        return ExitCode::from(2);
    };
    let (Ok(server), Ok(count)) = (server.parse::<SocketAddr>(), count.parse::<u32>()) else {
        eprintln!("no address or no number");
        return ExitCode::from(2);
    };
    let (started, mut times) = (Instant::now(), Vec::with_capacity(count as usize));
    for number in 0..count {
        // Another address for each client: the port of a closed socket may come again.
        let local = Ipv4Addr::from(0x7f01_0001 + number);
        let mut client = Client::on(IpAddr::V4(local), server, user, password);
        let asked = Instant::now();
        if let Err(code) = client.allocate() {
            eprintln!("allocation {number}: {code}");
            return ExitCode::FAILURE;
        }
        times.push(asked.elapsed());
    }
    if let Some(file) = arguments.get(4)
        && let Err(error) = std::fs::write(file, lines(&times))
    {
        eprintln!("{file}: {error}");
        return ExitCode::FAILURE;
    }
    println!("{count} allocations in {:.1} s", started.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

fn lines(times: &[Duration]) -> String {
    times.iter().map(|time| format!("{}\n", time.as_micros())).collect()
}
