//! Embeds a TURN server: `cargo run -p turn-server --example embed [SECONDS]`.
//!
//! Listens on a free port of loopback and prints its address and one credential. Serves for SECONDS, or until Enter.

use std::io::{BufRead as _, stdin};
use std::time::Duration;

use turn_server::{TurnConfig, User};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = TurnConfig::on("127.0.0.1:0".parse()?);
    config.users.push(User::parse("demo:demo-password")?);
    // Loopback peers are denied by default; two clients on this machine need them.
    config.allow_own_hosts.push("127.0.0.0/8".parse()?);

    let server = turn_server::start(&config)?;
    println!("turn:{}  user demo  password demo-password", server.listen()[0]);

    match std::env::args().nth(1) {
        Some(seconds) => std::thread::sleep(Duration::from_secs(seconds.parse()?)),
        None => drop(stdin().lock().lines().next()),
    }

    let datagrams = server.stop().accounting();
    println!("{} datagrams received, {} sent, {} dropped", datagrams.input, datagrams.out, datagrams.dropped);
    Ok(())
}
