#!/usr/bin/env python3
"""Tries what dist/package.py made: checksums, the tarball with its configuration and symbols, and the image by `unshare` and by podman, where that is.

dist/check.py FOLDER. Nothing is installed, all is unpacked into a temporary folder. `podman run` is not tried where podman cannot start any container.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path


def main():
    (dist,) = map(Path, sys.argv[1:])
    sums = dist / "SHA256SUMS"
    run("sha256sum", "--check", "--quiet", sums.name, cwd=dist)
    tarball, symbols, image = (dist / line.split()[1] for line in sums.read_text().splitlines())
    version = re.fullmatch(r"rhumb-(.+)-x86_64-linux\.tar\.gz", tarball.name)[1]
    with tempfile.TemporaryDirectory() as scratch:
        for archive in (tarball, symbols):
            run("tar", "-xf", archive, "-C", scratch)
        unpacked = Path(scratch) / tarball.name.removesuffix(".tar.gz")
        expect(run(unpacked / "rhumb", "--version"), f"rhumb {version}")
        runs_by_example(unpacked)
        finds_symbols(unpacked / "rhumb")
        runs_as_image(image, Path(scratch) / "image", version)
        runs_in_podman(image, version)


def runs_by_example(folder):
    """A site starts by the example configuration, with addresses of its own so that others may run here, and stops when it is told to."""
    addresses = {}
    text = re.sub(r"127\.0\.0\.1:\d+", lambda found: addresses.setdefault(found[0], free_address()), (folder / "rhumb.toml").read_text())
    (folder / "here.toml").write_text(text.replace("/var/lib/rhumb", str(folder / "data")).replace("/etc/rhumb", str(folder)))
    run(folder / "rhumb", "secret", folder / "cluster.secret")
    log = folder / "log"
    with open(log, "w") as output:
        site = subprocess.Popen([folder / "rhumb", "start", "--config", folder / "here.toml"], stdout=output, stderr=output)
    try:
        if not answers(f"http://{addresses['127.0.0.1:8080']}/healthz", site):
            sys.exit(f"the site does not answer:\n{log.read_text()}")
    finally:
        site.terminate()
    expect(site.wait(30), 0)
    print("tarball: runs, and a site starts by its example configuration")


def finds_symbols(binary):
    """The binary has none itself; a debugger that follows its link finds the name of a function."""
    expect(run("nm", binary, stderr=subprocess.DEVNULL), "")
    start = next(line.split()[0] for line in run("nm", f"{binary}.debug").splitlines() if line.endswith(" T main"))
    expect(run("addr2line", "--functions", "--exe", binary, start).splitlines()[0], "main")
    print("symbols: found beside the binary")


def runs_as_image(archive, folder, version):
    """By its index, as a loader would: the layers make the root, in which its entry point runs."""
    root = folder / "root"
    root.mkdir(parents=True)
    run("tar", "-xf", archive, "-C", folder)
    (manifest,) = read(folder / "index.json")["manifests"]
    manifest = read(folder / blob(manifest))
    for layer in manifest["layers"]:
        run("tar", "-xf", folder / blob(layer), "-C", root)
    entry = read(folder / blob(manifest["config"]))["config"]["Entrypoint"]
    expect(run("unshare", "--map-root-user", f"--root={root}", *entry, "--version"), f"rhumb {version}")
    print("image: runs in its own root")


def runs_in_podman(image, version):
    if not shutil.which("podman"):
        print("podman: not tried, it is not here")
        return
    name = run("podman", "load", "--quiet", "--input", image).split()[-1]
    started = subprocess.run(["podman", "run", "--rm", "--network=host", name, "--version"], capture_output=True, text=True)
    run("podman", "rmi", name)
    if "OCI" in started.stderr:
        print(f"podman: loads the image, but starts no containers here: {started.stderr.strip()}")
        return
    expect(started.stdout.strip(), f"rhumb {version}")
    print("podman: loads and runs the image")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout.strip()


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"expected {wanted!r}, found {found!r}")


def answers(url, process):
    """Does it within half a minute, and while the process runs?"""
    for _ in range(300):
        try:
            urllib.request.urlopen(url)
            return True
        except urllib.error.URLError:
            if process.poll() is not None:
                return False
            time.sleep(0.1)
    return False


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return "127.0.0.1:{}".format(listener.getsockname()[1])


def read(path):
    return json.loads(path.read_text())


def blob(descriptor):
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


main()
