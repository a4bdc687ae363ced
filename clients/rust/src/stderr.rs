//! What the developer should read: warnings of redis-rs, and panics in its tasks, a few lines a second.

use std::{fmt::Display, panic, sync::Mutex};

use crate::clock;

const LINES_PER_SECOND: u32 = 5;

/// The second of the last line, and how many lines it has had.
static WRITTEN: Mutex<(u64, u32)> = Mutex::new((0, 0));

pub fn install() {
    log::set_logger(&Warnings).expect("no other logger is set");
    log::set_max_level(log::LevelFilter::Warn);
    panic::set_hook(Box::new(|panic| line(panic)));
}

fn line(text: impl Display) {
    let second = clock::now() / 1_000_000_000;
    let mut written = WRITTEN.lock().unwrap_or_else(|error| error.into_inner());
    if written.0 != second {
        *written = (second, 0);
    }
    if written.1 < LINES_PER_SECOND {
        written.1 += 1;
        eprintln!("{text}");
    }
}

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        line(format_args!("{}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}
