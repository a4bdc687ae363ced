//! Client adapter for redis-rs; ../PROTOCOL.md says what it does. The name by which it is started is that of the driver.

mod clock;
mod connection;
mod driver;
mod failure;
mod frames;
mod messages;
mod outcome;
mod redis_rs;
mod redis_rs_multiplexed;
mod refusal;
mod servers;
mod session;
mod setting;
mod settings;
mod stderr;
mod told;

use std::{
    env, io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{self, ExitCode},
    thread,
    time::{Duration, Instant},
};

use driver::Driver;
use session::End;
use tokio::signal::unix::{SignalKind, signal};

const RETRY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5 * 60);

fn main() -> ExitCode {
    stderr::install();
    thread::spawn(exit_at_sigterm);
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for the signal that ends a container: its first process ignores it, unless it has a handler.
fn exit_at_sigterm() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        signal(SignalKind::terminate())?.recv().await;
        io::Result::Ok(())
    })?;
    process::exit(0)
}

fn run() -> io::Result<()> {
    let mut arguments = env::args_os().map(PathBuf::from);
    let program = arguments.next().unwrap_or_default();
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let driver =
        Driver::named(name).ok_or_else(|| io::Error::other(format!("started as {name:?}, which is no driver")))?;
    let path = arguments
        .next()
        .ok_or_else(|| io::Error::other(format!("usage: {name} SOCKET")))?;
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| io::Error::other("rustls has another crypto provider already"))?;

    let agent = dial(&path)?;
    agent.set_nonblocking(true)?;
    let mut greeting = messages::hello(driver);
    loop {
        // Each client has a runtime of its own: tasks that redis-rs leaves behind, such as reconnects, end with it.
        let runtime = tokio::runtime::Runtime::new()?;
        let end = runtime.block_on(session::run(agent.try_clone()?, driver, &greeting));
        runtime.shutdown_background();
        match end? {
            End::Closed => return Ok(()),
            End::Refused(refusal) => greeting = messages::refused(&refusal),
        }
    }
}

/// Connects to the agent, which may not listen yet.
fn dial(path: &Path) -> io::Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Ok(agent) => return Ok(agent),
            Err(error) if start.elapsed() >= PATIENCE => {
                let message = format!("no agent listens at {}: {error}", path.display());
                return Err(io::Error::other(message));
            }
            Err(_) => thread::sleep(RETRY),
        }
    }
}
