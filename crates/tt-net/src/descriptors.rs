//! The limit of open files, and the kernel's table of them.

use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::close;

/// Raises the number of descriptors that the process may have to the most that it may allow itself, and returns it.
///
/// # Errors
/// The kernel's error.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// Makes the kernel's table of this process large enough for `count` descriptors, or for as many as the limit allows.
///
/// The table never shrinks. Without this it doubles whenever a descriptor does not fit, and the thread that opens that
/// descriptor waits until every CPU has left its read-side sections (`synchronize_rcu`): 5 to 16 ms (Linux 6.18, two CPUs)
/// in which it serves nothing.
///
/// # Errors
/// The kernel's error: no memory for the table, or no free descriptor at all.
pub fn reserve_descriptors(count: u64) -> io::Result<()> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let Some(highest) = count.min(soft).checked_sub(1) else { return Ok(()) };
    let highest = i32::try_from(highest).map_err(|_| io::ErrorKind::InvalidInput)?;
    // A duplicate of any descriptor, with at least this number. An epoll instance is one that every process can have.
    let any = nix::sys::epoll::Epoll::new(nix::sys::epoll::EpollCreateFlags::EPOLL_CLOEXEC)?;
    match fcntl(&any.0, FcntlArg::F_DUPFD_CLOEXEC(highest)) {
        Ok(duplicate) => close(duplicate)?,
        // All numbers from there on are in use: the table has them.
        Err(Errno::EMFILE) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::reserve_descriptors;
    use nix::sys::resource::{Resource, getrlimit};

    #[test]
    fn the_table_is_reserved_by_several_at_once_and_up_to_the_limit() {
        let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..200).for_each(|_| reserve_descriptors(u64::MAX).unwrap()));
            }
        });
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap().trim();
        assert!(size.parse::<u64>().unwrap() >= limit, "{size}");
        reserve_descriptors(0).unwrap();
    }
}
