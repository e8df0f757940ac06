"""Programs of others that a comparison runs, and how one comes by them."""

import os
import shutil
from dataclasses import dataclass
from glob import glob


@dataclass(frozen=True)
class Program:
    name: str
    # What to do where it is not.
    install: str
    # Where to look before PATH, as a pattern; of several versions the newest is taken.
    elsewhere: str = ""

    def find(self):
        """The path, or None."""
        folders = [*sorted(glob(self.elsewhere), reverse=True), os.environ.get("PATH", os.defpath)]
        return shutil.which(self.name, path=os.pathsep.join(folders))

    def path(self):
        """The path; `missing` has seen to it that there is one."""
        found = self.find()
        if found is None:
            raise FileNotFoundError(self.name)
        return found


def missing(programs):
    """What to tell about those that are not here, a line for each way to get some of them."""
    absent = {}
    for program in dict.fromkeys(programs):
        if program.find() is None:
            absent.setdefault(program.install, []).append(program.name)
    return [f"{', '.join(names)}: not here; {install}" for install, names in absent.items()]


# Debian keeps the server and pgbench outside of PATH, in a folder for each version.
POSTGRESQL_FOLDERS = "/usr/lib/postgresql/*/bin"

INITDB = Program("initdb", "apt-get install postgresql-15", POSTGRESQL_FOLDERS)
POSTGRES = Program("postgres", "apt-get install postgresql-15", POSTGRESQL_FOLDERS)
PGBENCH = Program("pgbench", "apt-get install postgresql-15", POSTGRESQL_FOLDERS)
PSQL = Program("psql", "apt-get install postgresql-client-15", POSTGRESQL_FOLDERS)
REDIS_SERVER = Program("redis-server", "apt-get install redis-server")
REDIS_CLI = Program("redis-cli", "apt-get install redis-tools")
REDIS_BENCHMARK = Program("redis-benchmark", "apt-get install redis-tools")
ETCD = Program("etcd", "apt-get install etcd-server")
GO = Program("go", "install Go 1.24 or later, which builds etcd's own benchmark", "/usr/local/go/bin")
