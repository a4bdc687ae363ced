//! Sets REDIS_VERSION and RUST_VERSION for the adapter's hello: the version of redis-rs in Cargo.lock, and that of the compiler.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");

    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock is read");
    let redis = lock
        .split_once("name = \"redis\"\nversion = \"")
        .and_then(|(_, rest)| rest.split('"').next())
        .expect("Cargo.lock names redis");
    println!("cargo:rustc-env=REDIS_VERSION={redis}");

    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let said = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let said = String::from_utf8(said.stdout).expect("rustc says its version in UTF-8");
    let rust = said.split(' ').nth(1).expect("rustc says `rustc VERSION ...`");
    println!("cargo:rustc-env=RUST_VERSION={rust}");
}
