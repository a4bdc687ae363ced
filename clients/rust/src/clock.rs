//! What the system says of time, and of this process.

use std::fs;

use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};

/// The time by CLOCK_MONOTONIC, in nanoseconds. `Instant` reads the same clock, but does not give the number.
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The user and system time of this process, in nanoseconds.
pub fn cpu() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// The resident memory of this process, in bytes.
pub fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| statm.split(' ').nth(1)?.parse().ok())
        .unwrap_or(0u64);
    pages * page_size() as u64
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
