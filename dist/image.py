"""A container image as an archive that `podman load` and `docker load` take: one layer with the binary and the libraries that it is linked to.

The archive has the layout of OCI, and the `manifest.json` of Docker's own format over the same blobs, for loaders that know only that one. No daemon
takes part, and no image is beneath: `ldd` tells the libraries, which are copied from this machine.
"""

import hashlib
import json
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import archive
from archive import Entry

# Of a user without name or rights outside. The number is high so that it meets no user of the host.
USER = 26257
PORTS = {"sql": 26257, "resp": 6380, "http": 8080, "peer": 27257}


class Image:
    def __init__(self, binary, version, time, license):
        self.binary, self.version, self.time, self.license = binary, version, time, license
        self.name = f"localhost/rhumb:{version}"

    def write(self, path, scratch):
        """Writes the archive; `scratch` is an empty folder for the parts."""
        layer_tar, layer = scratch / "layer.tar", scratch / "layer.tar.gz"
        archive.write(layer_tar, self.root(), self.time)
        archive.compress(layer_tar, layer)

        config = as_json(self.config(diff_id=sha256(layer_tar)))
        manifest = as_json({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [{
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": f"sha256:{sha256(layer)}",
                "size": layer.stat().st_size,
            }],
        })
        index = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [descriptor("application/vnd.oci.image.manifest.v1+json", manifest) | {
                "annotations": {"org.opencontainers.image.ref.name": self.name, "io.containerd.image.name": self.name},
            }],
        }
        of_docker = [{"Config": blob(text_sha256(config)), "RepoTags": [self.name], "Layers": [blob(sha256(layer))]}]

        archive.write(path, {
            "oci-layout": Entry(text=as_json({"imageLayoutVersion": "1.0.0"})),
            "index.json": Entry(text=as_json(index)),
            "manifest.json": Entry(text=as_json(of_docker)),
            blob(text_sha256(config)): Entry(text=config),
            blob(text_sha256(manifest)): Entry(text=manifest),
            blob(sha256(layer)): Entry(source=layer),
        }, self.time)

    def root(self):
        """The files of the image."""
        return {
            "usr/bin/rhumb": Entry(source=self.binary, mode=0o755),
            "usr/share/doc/rhumb/LICENSE": Entry(source=self.license),
            "etc/passwd": Entry(text=f"root:x:0:0:root:/:/sbin/nologin\nrhumb:x:{USER}:{USER}:rhumb:/data:/sbin/nologin\n"),
            "etc/group": Entry(text=f"root:x:0:\nrhumb:x:{USER}:\n"),
            "etc/rhumb": Entry(mode=0o755),
            "data": Entry(mode=0o700, owner=USER),
            "tmp": Entry(mode=0o1777),
            **{str(library).lstrip("/"): Entry(source=library, mode=0o755) for library in libraries(self.binary)},
            **{str(text).lstrip("/"): Entry(source=text) for text in copyrights()},
        }

    def config(self, diff_id):
        return {
            "created": datetime.fromtimestamp(self.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "User": f"{USER}:{USER}",
                "Entrypoint": ["/usr/bin/rhumb"],
                "Cmd": ["start", "--config", "/etc/rhumb/rhumb.toml"],
                "WorkingDir": "/data",
                "Env": ["PATH=/usr/bin"],
                "Volumes": {"/data": {}},
                "ExposedPorts": {f"{port}/tcp": {} for port in PORTS.values()},
                "StopSignal": "SIGTERM",
                "Labels": {
                    "org.opencontainers.image.title": "Rhumb",
                    "org.opencontainers.image.description": "A geo-distributed transactional SQL database",
                    "org.opencontainers.image.version": self.version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.source": "https://github.com/rhumb-db/rhumb",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        }


def libraries(binary):
    """What the binary loads, the loader among it, under the names by which it is looked for."""
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def copyrights():
    """The notices of the libraries that are handed on, where Debian keeps them."""
    notices = [Path(f"/usr/share/doc/{package}/copyright") for package in ("libc6", "libgcc-s1")]
    return [notice for notice in notices if notice.exists()]


def descriptor(media_type, text):
    return {"mediaType": media_type, "digest": f"sha256:{text_sha256(text)}", "size": len(text.encode())}


def blob(digest):
    return f"blobs/sha256/{digest}"


def as_json(value):
    return json.dumps(value, indent=1)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
