"""Three regions without delay, each with a copy: one row is updated, beside a cluster of three members of etcd.

The client of etcd is etcd's own `benchmark`, built from its module: Debian has no benchmark for etcd, `etcdctl` starts a process for each request, and
Python's clients, as well as etcd's JSON gateway, cost more processor time than the server and would be what is measured. `benchmark stm` does what an
UPDATE has to do: get a key, then put it in a transaction that compares the revision of what was got, and again if that is another by now. With isolation
`r` the member that is asked answers the get alone, as a region does the read of an UPDATE of Rhumb; then a majority has the write on disk.

Connections are divided evenly among the members, as those of `rhumb bench` are among the regions, and both clients begin the next update as soon as the
last one is answered. A value of etcd is as long as a record of YCSB, of which Rhumb's client sends only the field that changes.
"""

import json
import re
from pathlib import Path

from client import ClientFailed, CountedContender, measured
from comparison import Case, Comparison, Contender, Figure
from etcd import Etcd
from programs import ETCD, GO
from rhumb import Rhumb

REGIONS = 3
RECORDS = 10_000
# Of a record of YCSB: ten fields of 100 bytes.
VALUE_BYTES = 1000
LOADERS = 8 * REGIONS

BENCHMARK_MODULE = Path(__file__).resolve().parent / "etcd-benchmark"


class ThreeRegions(Comparison):
    name = "three-regions"
    summary = f"update of one of {RECORDS:,} records, three regions without delay, beside etcd with three members"
    programs = (ETCD, GO)
    preparation = "building etcd's benchmark, which takes minutes the first time, starting the servers"

    def cases(self):
        return [Case(f"{count} connections", count) for count in (REGIONS, 21 * REGIONS)]

    def contenders(self, options, folder):
        benchmark = options.build / "etcd-benchmark"
        build(benchmark)
        return [RhumbBench(Rhumb(folder, options.binary, REGIONS)), EtcdBenchmark(Etcd(folder), benchmark)]


def build(benchmark):
    benchmark.parent.mkdir(parents=True, exist_ok=True)
    measured([GO.path(), "build", "-o", benchmark, "go.etcd.io/etcd/v3/tools/benchmark"], cwd=BENCHMARK_MODULE)


class RhumbBench(Contender):
    def load(self):
        measured(self.bench("init", "--records", RECORDS))

    def measure(self, case, seconds):
        command = self.bench(
            "run", "--ratio", "0:1", "--operations", 1, "--distribution", "uniform",
            "--clients", case.size // REGIONS, "--duration", f"{seconds}s", "--warmup", "1s", "--json",
        )
        total = json.loads(measured(command))["total"]
        return Figure(total["throughput_per_s"], total)

    def bench(self, verb, *options):
        return [self.server.binary, "bench", verb, "ycsb", f"--demo={self.server.state_file}", *options]


class EtcdBenchmark(CountedContender):
    def __init__(self, server, binary):
        super().__init__(server)
        self.binary = binary

    def load(self):
        """The keys that `stm` draws: numbers, each as 16 bytes."""
        options = ["--sequential-keys", "--key-size=16", f"--key-space-size={RECORDS}", f"--total={RECORDS}"]
        measured(self.benchmark("put", LOADERS, *options))

    def send(self, case, requests):
        options = ["--isolation=r", f"--keys={RECORDS}", "--keys-per-txn=1", "--txn-wr-percent=100", f"--total={requests}"]
        return report(measured(self.benchmark("stm", case.size, *options)))

    def benchmark(self, kind, connections, *options):
        return [
            self.binary, kind, f"--endpoints={self.server.endpoints()}", f"--conns={connections}", f"--clients={connections}",
            f"--val-size={VALUE_BYTES}", *options,
        ]


def report(text):
    """What etcd's benchmark tells at the end, its times in seconds; it ends well even if requests failed."""
    if "Error distribution" in text:
        raise ClientFailed(f"etcd has refused requests:\n{text}")
    return Figure(
        float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]),
        {f"p{percent}_ms": float(seconds) * 1000 for percent, seconds in re.findall(r"([\d.]+)% in ([\d.]+) secs", text)},
    )
