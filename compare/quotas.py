"""Tokens of a quota at one site, beside a counter of Redis that is synced as well; redis-benchmark is the client of both."""

import csv

from client import CountedContender, measured
from comparison import Case, Comparison, Figure
from programs import REDIS_BENCHMARK, REDIS_CLI, REDIS_SERVER
from redis import Redis
from rhumb import Rhumb

CONNECTIONS = 50
# More than any run acquires.
LIMIT = 10**12


class Quotas(Comparison):
    name = "redis"
    summary = f"ACQUIRE of a token, {CONNECTIONS} connections, one region, beside INCRBY of Redis with appendfsync always"
    programs = (REDIS_SERVER, REDIS_CLI, REDIS_BENCHMARK)

    def cases(self):
        return [Case(f"pipeline {depth}", depth) for depth in (1, 16)]

    def contenders(self, options, folder):
        return [
            QuotasContender(Rhumb(folder, options.binary, regions=1), ["QUOTA.CREATE", "vm", LIMIT], ["ACQUIRE", "vm", 1]),
            QuotasContender(Redis(folder), ["SET", "counter", 0], ["INCRBY", "counter", 1]),
        ]


class QuotasContender(CountedContender):
    def __init__(self, server, preparation, request):
        super().__init__(server)
        self.preparation, self.request = preparation, request

    def load(self):
        measured([REDIS_CLI.path(), "-e", "-p", self.server.redis_port(), *self.preparation])

    def send(self, case, requests):
        command = [
            REDIS_BENCHMARK.path(), "-p", self.server.redis_port(), "-c", CONNECTIONS, "-P", case.size,
            "-n", requests, "--csv", *self.request,
        ]
        return report(measured(command))


def report(text):
    """The one line of `--csv` below its head."""
    (row,) = csv.DictReader(text.splitlines())
    return Figure(float(row["rps"]), {name: float(value) for name, value in row.items() if name.endswith("_ms")})
