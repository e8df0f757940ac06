"""One row by its primary key, read or updated, beside PostgreSQL; pgbench is the client of both, with prepared statements."""

import os
import re
from itertools import islice

from client import measured
from comparison import Case, Comparison, Contender, Figure
from postgresql import PostgreSQL
from programs import INITDB, PGBENCH, POSTGRES, PSQL
from rhumb import ROWS_PER_COPY, Rhumb

ROWS = 100_000
CONNECTIONS = (1, 16, 64)

# An update may meet another of the same row, which Rhumb may refuse as a conflict; pgbench then tries again.
TRIES_MAX = 10

TABLE = "CREATE TABLE item (id INT PRIMARY KEY, value INT, filler TEXT)"
UPDATE = "UPDATE item SET value = value + 1 WHERE id = :id;\n"


class Rows(Comparison):
    programs = (INITDB, POSTGRES, PSQL, PGBENCH)
    statement = ""

    def cases(self):
        return cases_of(CONNECTIONS)

    def contenders(self, options, folder):
        script = script_of(folder, self.statement, ROWS)
        return [RowsContender(server, script, ROWS) for server in (Rhumb(folder, options.binary, regions=1), PostgreSQL(folder))]


class PointSelect(Rows):
    name = "point-select"
    summary = f"SELECT by primary key over {ROWS:,} rows, one region, beside PostgreSQL"
    statement = "SELECT value FROM item WHERE id = :id;\n"


class Update(Rows):
    name = "update"
    summary = f"UPDATE of one row by primary key over {ROWS:,} rows, one region, beside PostgreSQL"
    statement = UPDATE


class RowsContender(Contender):
    def __init__(self, server, script, rows):
        super().__init__(server)
        self.script, self.rows = script, rows

    def load(self):
        psql(self.server.url(), TABLE)
        self.copy("item", (f"{id}\t0\t{'x' * 84}\n" for id in range(1, self.rows + 1)))

    def copy(self, table, lines):
        piece = self.server.folder / "piece"
        lines = iter(lines)
        while text := "".join(islice(lines, ROWS_PER_COPY)):
            piece.write_text(text)
            psql(self.server.url(), f"\\copy {table} FROM '{piece}'")

    def measure(self, case, seconds):
        return report(measured(self.pgbench(case, seconds)))

    def pgbench(self, case, seconds, *options):
        return [
            PGBENCH.path(), "--no-vacuum", "--protocol=prepared", f"--file={self.script}", f"--time={seconds}", f"--max-tries={TRIES_MAX}",
            f"--client={case.size}", f"--jobs={min(case.size, os.cpu_count())}", *options, self.server.url(),
        ]


def cases_of(connections):
    return [Case(f"{count} connection{'s' if count > 1 else ''}", count) for count in connections]


def script_of(folder, statement, rows):
    """A file for pgbench: the statement, with any of the rows as its `:id`."""
    script = folder / "script.sql"
    script.write_text(f"\\set id random(1, {rows})\n{statement}")
    return script


def psql(url, *commands):
    return measured([PSQL.path(), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", url, *(f"--command={command}" for command in commands)])


def report(text):
    """What pgbench tells at the end."""
    def number(pattern):
        return float(re.search(pattern, text)[1])

    return Figure(
        number(r"tps = ([\d.]+)"),
        {
            "latency_average_ms": number(r"latency average = ([\d.]+)"),
            "transactions": int(number(r"actually processed: (\d+)")),
            "failed": int(number(r"failed transactions: (\d+)")),
            "retried": int(number(r"transactions retried: (\d+)")),
        },
    )
