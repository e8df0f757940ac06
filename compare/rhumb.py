"""Rhumb as `rhumb demo` runs it, without an emulated wide area: a process for each region."""

import json
import os
import signal

from server import Server, output

# A transaction writes no more than 100,000 rows, and may not prepare in time if it comes near that while the machine is busy. So all systems load in
# pieces of as many rows.
ROWS_PER_COPY = 10_000


class Rhumb(Server):
    name = "Rhumb"
    stop_signal = signal.SIGINT

    def __init__(self, folder, binary, regions):
        super().__init__(folder)
        self.binary, self.regions = binary, regions
        self.ready_file, self.state_file, self.data = (self.folder / name for name in ("ready.json", "state.json", "data"))

    def commands(self):
        yield [
            self.binary, "demo", "--wan", "none", "--regions", str(self.regions),
            "--data", self.data, "--ready-file", self.ready_file, "--state", self.state_file,
        ]

    def is_ready(self):
        return self.ready_file.exists()

    def addresses(self):
        """Of the first region: `pg`, a URL; `resp`, host and port; `http`."""
        return json.loads(self.ready_file.read_text())["regions"][0]

    def url(self):
        return self.addresses()["pg"]

    def redis_port(self):
        return int(self.addresses()["resp"].rpartition(":")[2])

    def settings(self):
        return {
            "version": output(self.binary, "--version"),
            "binary": str(self.binary),
            "binary_bytes": os.stat(self.binary).st_size,
            "commands": [process.args for process in self.processes],
            "configuration": {str(path.relative_to(self.data)): path.read_text() for path in sorted(self.data.glob("*/*.toml"))},
        }
