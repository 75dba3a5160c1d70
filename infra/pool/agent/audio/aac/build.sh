#!/bin/sh
# Builds decoder.wasm with Debian's toolchain for WebAssembly; the same packages give the same bytes.
#   apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld
set -eu
cd "$(dirname "$0")"
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
  CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=/usr/bin/wasm-ld \
  RUSTFLAGS="-C linker-flavor=wasm-ld -C target-feature=+simd128 --remap-path-prefix $HOME=/build" \
  cargo build --locked --release --target wasm32-unknown-unknown -Z build-std=std,panic_abort --target-dir "$target"
cp "$target/wasm32-unknown-unknown/release/aac.wasm" decoder.wasm
