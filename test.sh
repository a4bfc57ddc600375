#!/usr/bin/env bash
# Every check of the project. On a fresh Debian machine it installs what it needs first: as root a C
# linker from Debian and, where there is no cargo, Rust by rustup; for anybody cargo-deny from crates.io.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

need_debian() {
    command -v "$1" >/dev/null && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "error: $1 is missing; install Debian's package $2 and run this again" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" ca-certificates
}

step "tools"
need_debian cc "gcc libc6-dev"
export PATH="$HOME/.cargo/bin:$PATH"
if ! command -v cargo >/dev/null; then
    need_debian curl curl
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt
fi
if ! cargo deny --version >/dev/null 2>&1; then
    cargo install --quiet --locked cargo-deny
fi
cargo --version
cargo deny --version

step "format"
cargo fmt --all --check

step "lints, each feature alone and all together"
cargo clippy --quiet --workspace --all-targets --all-features -- -D warnings
cargo clippy --quiet --package hotgate --no-default-features -- -D warnings
cargo clippy --quiet --package hotgate --no-default-features --features axum -- -D warnings
cargo clippy --quiet --package hotgate --no-default-features --features admin -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --all-features

step "who may use whom"
.ci/edges

step "licences, sources and duplicates of dependencies"
cargo deny --log-level error --all-features check bans licenses sources

step "tests"
cargo test --workspace --all-features
