"""TPC-C's standard mix without pauses, beside PostgreSQL; `rhumb bench` is the client of both, and the figure the New-Orders that committed."""

import json

from client import measured
from comparison import Comparison, Contender, Figure
from postgresql import PostgreSQL
from programs import INITDB, POSTGRES, PSQL
from rhumb import Rhumb
from rows import cases_of

# A warehouse for about two terminals: as in TPC-C, most conflicts are between terminals of one warehouse.
WAREHOUSES = 8
# Of a warehouse's items and customers. All of them would take minutes to load.
SCALE = 0.1
CONNECTIONS = (1, 16)
MINUTE = 60


class TpcC(Comparison):
    name = "tpcc"
    summary = f"New-Orders a second in the mix of TPC-C over {WAREHOUSES} warehouses, serializable, one region, beside PostgreSQL"
    programs = (INITDB, POSTGRES, PSQL)

    def cases(self):
        return cases_of(CONNECTIONS)

    def contenders(self, options, folder):
        servers = (Rhumb(folder, options.binary, regions=1), PostgreSQL(folder))
        return [TpcCContender(server, options.binary) for server in servers]


class TpcCContender(Contender):
    def __init__(self, server, binary):
        super().__init__(server)
        self.binary = binary

    def load(self):
        measured(self.bench("init", "--warehouses", WAREHOUSES, "--scale", SCALE))

    def measure(self, case, seconds):
        return report(measured(self.bench("run", "--clients", case.size, "--duration", f"{seconds}s", "--warmup", "1s", "--json")))

    def bench(self, verb, *options):
        return [self.binary, "bench", verb, "tpcc", "--url", f"here={self.server.url()}", *options]


def report(text):
    """What `rhumb bench run tpcc --json` tells."""
    (kind,) = [kind for kind in json.loads(text)["kinds"] if kind["kind"] == "new order"]
    return Figure(kind["per_minute"] / MINUTE, kind)
