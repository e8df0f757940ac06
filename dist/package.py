#!/usr/bin/env python3
"""Packs a binary for machines without Rust: dist/package.py BINARY, as `make dist` does.

In target/dist come a tarball of the stripped binary with what one needs to run it, one of its symbols, a container image, and SHA256SUMS of the
three. The same binary and commit give the same bytes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import archive
from archive import Entry
from image import Image, sha256
from separate import DIST, ROOT, separate, show


def main():
    (built,) = sys.argv[1:]
    binary, symbols = separate(built)
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    name, time = f"rhumb-{version}-x86_64-linux", time_of_commit()

    tarball, of_symbols, image = (DIST / f"{name}{ending}" for ending in (".tar.gz", "-symbols.tar.gz", "-oci.tar"))
    archive.write_compressed(tarball, {
        f"{name}/rhumb": Entry(source=binary, mode=0o755),
        **{f"{name}/{path.name}": Entry(source=path) for path in documents()},
    }, time)
    archive.write_compressed(of_symbols, {f"{name}/{symbols.name}": Entry(source=symbols)}, time)
    with tempfile.TemporaryDirectory(dir=DIST) as scratch:
        Image(binary, version, time, ROOT / "LICENSE").write(image, Path(scratch))

    sums = DIST / "SHA256SUMS"
    sums.write_text("".join(f"{sha256(file)}  {file.name}\n" for file in (tarball, of_symbols, image)))
    show(tarball, of_symbols, image, sums)


def documents():
    return [*(ROOT / name for name in ("LICENSE", "README.md", "CHANGELOG.md")), ROOT / "dist/rhumb.toml", ROOT / "dist/rhumb.service"]


def time_of_commit():
    return int(subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True).stdout)


main()
