#!/bin/sh
# Runs Node for arm64 under emulation. QEMU looks for every file below `root` first: for libraries, and for
# /proc/cpuinfo, since ONNX Runtime crashes on the description of a processor of another architecture.
exec "$AURICLE_ARM64/usr/bin/qemu-aarch64-static" -L "$AURICLE_ARM64/root" "$AURICLE_ARM64/package/bin/node" "$@"
