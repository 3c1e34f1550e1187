//! Memory that is really there. A virtual machine may give free memory back to its host and get each page back when something is
//! written to it: measured 12 µs for a page instead of 1.6, and pauses of up to 20 ms. A server in production has had its memory
//! for days; one that a benchmark started a second ago would pay for every page, on some machines and on some runs. So
//! some free memory is written to before a measurement. The pages that were freed last are given out first.

use super::environment::Environment;
use super::report::field;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// As much as a measurement makes servers, roles and the files' cache grow.
const PIECES: usize = 1024;
const PIECE_BYTES: usize = 1 << 20;
/// At most this part of what is available, so that nothing has to make room for it.
const PART: usize = 8;
/// Files here are memory, and given back to the kernel at once when they go; an allocator would keep its own for itself.
const MEMORY: &str = "/dev/shm";

/// Writes to free memory and frees it, beside servers of its own. Where that cannot be done the measurement is as it would have been.
pub(super) async fn touched(environment: &Environment) {
    if environment.role_processes().is_none() {
        return;
    }
    let path = Path::new(MEMORY).join(format!("seckill-bench-{}", std::process::id()));
    let count = pieces(&field("/proc/meminfo", "MemAvailable"));
    let done = tokio::task::spawn_blocking(move || write_and_free(path, count)).await;
    if let Err(error) = done.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
        tracing::warn!(%error, "no memory was touched before this measurement");
    }
}

/// How much is written to, from what is available by `/proc/meminfo`.
fn pieces(available: &str) -> usize {
    let kib = available.trim_end_matches("kB").trim().parse::<usize>().unwrap_or(0);
    (kib / (PIECE_BYTES >> 10) / PART).min(PIECES)
}

fn write_and_free(path: PathBuf, count: usize) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    // Without a name from here on, it is gone with this process, however that ends.
    std::fs::remove_file(path)?;
    let piece = vec![1u8; PIECE_BYTES];
    (0..count).try_for_each(|_| file.write_all(&piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_not_made_smaller() {
        assert_eq!(["24373600 kB", "2097152 kB", "900 kB", ""].map(pieces), [1024, 256, 0, 0]);
    }

    #[test]
    fn what_was_written_is_gone_and_a_file_of_somebody_else_stays() {
        let path = std::env::temp_dir().join(format!("seckill-touch-{:x}", rand::random::<u64>()));
        write_and_free(path.clone(), 3).unwrap();
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(write_and_free(path.clone(), 1).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(path).unwrap();
    }
}
