//! `truetick paths`: packets of the kernel path.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use tt_os::shutdown::Shutdown;

use super::{End, Form, PathDump, Wanted};

/// Exit status if the server ended before there were `--count` packets.
const STATUS_INCOMPLETE: u8 = 3;

/// Subcommands of `truetick paths`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write packets that the kernel relays as a pcap file, for tcpdump -r and Wireshark; needs root
    ///
    /// tcpdump does not see these packets. Each is written twice: as received and as sent. They are copied only while
    /// the command runs. If it is too slow, the file lacks packets, but the calls do not.
    Dump(Dump),
}

#[derive(Debug, clap::Args)]
struct Dump {
    /// Interface where the packets arrive [default: all where the kernel relays]
    #[arg(value_name = "IFACE")]
    interface: Option<String>,
    /// Stop after N packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Write one in K of the packets of each CPU
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Write packets as received, as sent, or both
    #[arg(long, value_enum, default_value_t = FormArg::Both)]
    form: FormArg,
    /// File to write; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormArg {
    Both,
    Received,
    Sent,
}

/// Runs a subcommand. Status 0: success, or stopped. 1: it failed. 2: invalid arguments. 3: the server ended first.
///
/// # Errors
/// No program is there, a privilege is missing, or the file cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let Command::Dump(args) = &args.command;
    dump(args).context("paths dump")
}

fn dump(args: &Dump) -> Result<ExitCode> {
    let is_file = args.out.as_os_str() != "-";
    if !is_file && io::stdout().is_terminal() {
        eprintln!("truetick: paths dump: a terminal shows no packets: use --out FILE, or pipe it to tcpdump -nr -");
        return Ok(ExitCode::from(2));
    }
    let wanted = Wanted {
        interface: args.interface.clone(),
        every: args.every,
        count: args.count,
        form: match args.form {
            FormArg::Both => Form::Both,
            FormArg::Received => Form::Received,
            FormArg::Sent => Form::Sent,
        },
    };
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let dump = PathDump::begin(&wanted)?;
    let interfaces = dump.interfaces();
    let mut out: Box<dyn Write> = if is_file {
        // Packets of calls are private.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&args.out);
        Box::new(file.with_context(|| format!("--out: {}", args.out.display()))?)
    } else {
        Box::new(io::stdout().lock())
    };
    eprintln!("packets that the kernel relays from {interfaces}, until Ctrl-C");
    let dumped = dump.write(&mut BufWriter::new(&mut out), &|| shutdown.is_requested())?;
    let mut said = format!("{} packets written, {} lost", dumped.packets, dumped.lost);
    if !dumped.paused.is_zero() {
        said += &format!("; none copied for {:.1} s, in which the command did not run", dumped.paused.as_secs_f64());
    }
    if dumped.end == End::Detached {
        said += "; the server has ended";
    }
    eprintln!("{said}");
    Ok(if dumped.end == End::Detached { ExitCode::from(STATUS_INCOMPLETE) } else { ExitCode::SUCCESS })
}
