"""PostgreSQL with the settings that it comes with: a commit is answered once it is on disk."""

import os
import shutil
import signal
import subprocess

from programs import INITDB, POSTGRES, PSQL
from server import Server, free_ports, output, run_as

# What decides about durability and speed; the figures' readers see the values.
SHOWN = [
    "fsync", "synchronous_commit", "wal_sync_method", "full_page_writes", "default_transaction_isolation",
    "shared_buffers", "work_mem", "max_wal_size", "checkpoint_timeout", "max_parallel_workers_per_gather", "max_connections", "jit",
]


class PostgreSQL(Server):
    name = "PostgreSQL"
    # A fast shutdown: SIGTERM would wait for the clients.
    stop_signal = signal.SIGINT
    # It refuses to run as root; Debian's package makes this user.
    user = "postgres" if os.geteuid() == 0 else None

    def __init__(self, folder):
        super().__init__(folder)
        (self.port,) = free_ports(1)
        self.data = self.folder / "data"

    def prepare(self):
        if self.user:
            shutil.chown(self.folder, self.user, self.user)
        command = [INITDB.path(), "--pgdata", self.data, "--username=rhumb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        output(*command, cwd=self.folder, **run_as(self.user))

    def commands(self):
        yield [POSTGRES.path(), "-D", self.data, "-h", "127.0.0.1", "-p", str(self.port), "-k", self.folder]

    def is_ready(self):
        return subprocess.run([PSQL.path(), self.url(), "--command", "SELECT 1"], capture_output=True).returncode == 0

    def url(self):
        return f"postgres://rhumb@127.0.0.1:{self.port}/postgres"

    def settings(self):
        return {
            "version": output(POSTGRES.path(), "--version"),
            "commands": [process.args for process in self.processes],
            **{name: output(PSQL.path(), self.url(), "--no-align", "--tuples-only", "--command", f"SHOW {name}") for name in SHOWN},
        }
