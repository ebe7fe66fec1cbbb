//! Makes many allocations at a TURN server and leaves them: `allocations SERVER USER PASSWORD COUNT`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Instant;

use testkit::turn_client::Client;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, user, password, count] = &arguments[..] else {
        eprintln!("usage: allocations SERVER USER PASSWORD COUNT");
        return ExitCode::from(2);
    };
    let (Ok(server), Ok(count)) = (server.parse::<SocketAddr>(), count.parse::<u32>()) else {
        eprintln!("no address or no number");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    for number in 0..count {
        // Another address for each client: the port of a closed socket may come again.
        let local = Ipv4Addr::from(0x7f01_0001 + number);
        if let Err(code) = Client::on(IpAddr::V4(local), server, user, password).allocate() {
            eprintln!("allocation {number}: {code}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} allocations in {:.1} s", started.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
