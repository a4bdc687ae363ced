#!/usr/bin/env bash
# Builds the adapters of redis-rs, RedisRs and RedisRsMultiplexed, into OUT.
#
#   build.sh OUT
#
# OUT/rust/adapter is the program, without shared libraries; the drivers are links to it. OUT/.build/rust is only needed to build again quickly.
# It needs cargo and rustc, and cc with the static C library (Debian: gcc, libc6-dev).
set -euo pipefail

needed=1.88 # redis-rs; rust-version in Cargo.toml

[ $# = 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2; }
for tool in cargo rustc cc; do
  command -v "$tool" >/dev/null || { echo "build.sh: $tool is missing: Rust $needed or newer, and a C compiler, are needed" >&2 && exit 1; }
done
found=$(rustc --version | cut -d ' ' -f 2)
if [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
  echo "build.sh: Rust $needed or newer is needed, and rustc is $found" >&2
  exit 1
fi

mkdir -p "$1/rust"
out=$(cd "$1" && pwd -P)
target=$(rustc -vV | sed -n 's/^host: //p')
cd "$(dirname -- "${BASH_SOURCE[0]}")"
# Paths of this machine stay out of the program. The target is named so that the flags are not those of build scripts and macros.
flags="-C target-feature=+crt-static --remap-path-prefix ${CARGO_HOME:-$HOME/.cargo}=cargo"
RUSTFLAGS=$flags CARGO_TARGET_DIR=$out/.build/rust cargo build --quiet --release --locked --target "$target"

adapter=$out/.build/rust/$target/release/adapter
cmp -s "$adapter" "$out/rust/adapter" || install -m 755 "$adapter" "$out/rust/adapter"
for driver in RedisRs RedisRsMultiplexed; do
  ln -sfn rust/adapter "$out/$driver"
done
