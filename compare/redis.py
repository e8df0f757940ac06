"""Redis with every write synced before it is answered: an append-only file with `appendfsync always`, and no snapshots."""

import subprocess

from programs import REDIS_CLI, REDIS_SERVER
from server import Server, free_ports, output


class Redis(Server):
    name = "Redis"

    def __init__(self, folder):
        super().__init__(folder)
        (self.port,) = free_ports(1)

    def commands(self):
        yield [
            REDIS_SERVER.path(), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.folder,
            "--save", "", "--appendonly", "yes", "--appendfsync", "always",
        ]

    def is_ready(self):
        pinged = subprocess.run([REDIS_CLI.path(), "-p", str(self.port), "PING"], capture_output=True, text=True)
        return pinged.stdout.strip() == "PONG"

    def redis_port(self):
        return self.port

    def settings(self):
        shown = output(REDIS_CLI.path(), "-p", self.port, "CONFIG", "GET", "append*", "io-threads").splitlines()
        return {
            "version": output(REDIS_SERVER.path(), "--version"),
            "commands": [process.args for process in self.processes],
            "configuration": dict(zip(shown[::2], shown[1::2])),
        }
