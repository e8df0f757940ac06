#!/usr/bin/env python3
"""Separates a binary from its symbols: dist/separate.py BINARY writes `rhumb` and `rhumb.debug` to target/dist. What cargo built stays as it is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "dist"


def separate(built):
    """The binary, and its symbols, which debuggers and backtraces find beside it by a link in the binary."""
    DIST.mkdir(parents=True, exist_ok=True)
    binary, symbols = DIST / "rhumb", DIST / "rhumb.debug"
    subprocess.run(["objcopy", "--only-keep-debug", built, symbols], check=True)
    symbols.chmod(0o644)
    shutil.copy(built, binary)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={symbols}", binary], check=True)
    return binary, symbols


def show(*files):
    for file in files:
        print(f"{file.stat().st_size / 1e6:7.1f} MB  {file}")


if __name__ == "__main__":
    show(*separate(sys.argv[1]))
