//! A ring between two processes, in a file that both map.
//!
//! The parent starts this program again as the producer; the shared file is its standard input.
//!
//! ```text
//! cargo run --release -p tt-sync --example processes
//! ```

use std::error::Error;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::yield_now;

use memmap2::MmapMut;
use tt_sync::region::{self, WAKE_WORDS};
use tt_sync::wait::{Blocking, WaitError, Yield};
use zerocopy::FromBytes;

const CAPACITY: usize = 1_024;
const EVENTS: u64 = 100_000;
/// The words to sleep on are in the first page, the ring's words in the rest.
const PAGE: usize = 4_096;
const _: () = assert!(WAKE_WORDS * size_of::<AtomicU32>() <= PAGE);

type Event = [u64; 7];

/// A file that is mapped until the process ends.
#[derive(Clone)]
struct SharedFile {
    wake_words: &'static [AtomicU32],
    words: &'static [AtomicU64],
}

impl SharedFile {
    fn map(file: &File) -> Result<Self, Box<dyn Error>> {
        // SAFETY: only the two processes of this program have the file, which has no name, and neither truncates it. Both
        // access its bytes through atomics alone.
        let map = unsafe { MmapMut::map_mut(file) }?;
        let (wake_words, words) = Box::leak(Box::new(map)).split_at_mut(PAGE);
        let wake_words = <[AtomicU32]>::mut_from_bytes(wake_words).map_err(|error| error.to_string())?;
        let words = <[AtomicU64]>::mut_from_bytes(words).map_err(|error| error.to_string())?;
        Ok(Self { wake_words, words })
    }
}

impl AsRef<[AtomicU32]> for SharedFile {
    fn as_ref(&self) -> &[AtomicU32] {
        self.wake_words
    }
}

impl AsRef<[AtomicU64]> for SharedFile {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words
    }
}

fn this_process() -> NonZeroU64 {
    NonZeroU64::new(std::process::id().into()).unwrap_or(NonZeroU64::MIN)
}

fn produce() -> Result<(), Box<dyn Error>> {
    let file = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let producer = region::producer::<Event, _>(SharedFile::map(&file)?, this_process())?;
    let mut producer = Blocking::new(producer, Yield(yield_now));
    (0..EVENTS).try_for_each(|number| producer.push([number; 7]))?;
    Ok(())
}

fn consume() -> Result<(), Box<dyn Error>> {
    let file = tempfile::tempfile()?;
    let words = region::words_needed::<Event>(CAPACITY).ok_or("the ring is too large")?;
    file.set_len((PAGE + words * size_of::<u64>()) as u64)?;
    let memory = SharedFile::map(&file)?;
    region::format::<Event>(&memory, CAPACITY)?;

    let mut child = Command::new(std::env::current_exe()?).arg("producer").stdin(Stdio::from(file)).spawn()?;
    let consumer = region::consumer::<Event, _>(memory.clone(), this_process())?;
    let mut consumer = Blocking::new(consumer, Yield(yield_now));
    let mut next = 0;
    let end = loop {
        match consumer.pop() {
            Ok(event) if event == [next; 7] => next += 1,
            Ok(event) => return Err(format!("event {next} is {event:?}").into()),
            Err(end) => break end,
        }
    };
    assert_eq!((next, end), (EVENTS, WaitError::Closed));
    println!("{next} events from process {}", child.id());
    if child.wait()?.success() { Ok(()) } else { Err("the producer failed".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("producer") => produce(),
        Some(other) => Err(format!("unknown argument: {other}").into()),
        None => consume(),
    }
}
