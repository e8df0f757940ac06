"""Rows copied in, and questions about all of them, beside PostgreSQL; psql is the client of both, and tells the times."""

import random
import re
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from client import ClientFailed, measured
from comparison import SECONDS, Case, Comparison, Contender, Figure
from postgresql import PostgreSQL
from programs import INITDB, POSTGRES, PSQL
from rhumb import ROWS_PER_COPY, Rhumb

# A busy site of Rhumb may refuse a large COPY, as any database may under serializable isolation; a client begins it again.
TRIES_MAX = 10
SERIALIZATION_FAILURE = "ERROR:  40001"

ROWS_PER_CUSTOMER = 100
COUNTRIES = 20
AMOUNT_MAX = 10_000

TABLES = [
    "DROP TABLE IF EXISTS sale",
    "DROP TABLE IF EXISTS customer",
    "CREATE TABLE sale (id INT PRIMARY KEY, customer INT, amount INT, note TEXT)",
    "CREATE TABLE customer (id INT PRIMARY KEY, country INT)",
]
COPY = Case("COPY", unit=SECONDS)
QUERIES = {
    Case("count", unit=SECONDS): "SELECT count(*) FROM sale",
    Case("filtered aggregate", unit=SECONDS): f"SELECT count(*), sum(amount), max(customer) FROM sale WHERE amount < {AMOUNT_MAX // 10}",
    Case("join", unit=SECONDS): "SELECT country, count(*), sum(amount) FROM sale JOIN customer ON customer = customer.id GROUP BY country",
}


class Analytic(Comparison):
    name = "analytic"
    summary = "COPY of --rows rows, a count, a filtered aggregate and a join over them, one region, beside PostgreSQL"
    programs = (INITDB, POSTGRES, PSQL)

    preparation = "writing rows to files, starting the servers"

    def cases(self):
        return [COPY, *QUERIES]

    def contenders(self, options, folder):
        pieces = write_pieces(folder, options.rows)
        return [
            AnalyticContender(Rhumb(folder, options.binary, regions=1), pieces),
            AnalyticContender(PostgreSQL(folder), pieces, after_copy="VACUUM (ANALYZE)"),
        ]


class AnalyticContender(Contender):
    def __init__(self, server, pieces, after_copy=None):
        super().__init__(server)
        self.pieces, self.after_copy = pieces, after_copy

    def measure(self, case, seconds):
        """A round copies into new tables, and asks the questions of these; how long it takes is not chosen."""
        if case != COPY:
            return figure(self.timed(QUERIES[case]))
        self.timed(*TABLES)
        copied = figure([milliseconds for piece in self.pieces for milliseconds in self.copied(piece)])
        if self.after_copy:
            # What its background processes would do within minutes, in the middle of a later measurement.
            self.timed(self.after_copy)
        return copied

    def copied(self, piece):
        """Milliseconds of each try, the refused ones first."""
        refused = []
        while True:
            try:
                return refused + self.timed(f"\\copy {piece.table} FROM '{piece.file}'")
            except ClientFailed as failed:
                refused += times(failed.printed)
                if SERIALIZATION_FAILURE not in failed.printed or len(refused) == TRIES_MAX:
                    raise

    def timed(self, *commands):
        """Milliseconds of each, without the connection."""
        return times(measured([
            PSQL.path(), "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose", self.server.url(),
            "--command=\\timing on", *(f"--command={command}" for command in commands),
        ]))


def times(text):
    """In milliseconds, as psql prints them, also of what failed."""
    return [float(found) for found in re.findall(r"^Time: ([\d.]+) ms", text, re.MULTILINE)]


def figure(milliseconds):
    """Of statements one after the other."""
    return Figure(sum(milliseconds) / 1000, {"statements_ms": milliseconds})


@dataclass(frozen=True)
class Piece:
    table: str
    file: Path


def write_pieces(folder, rows):
    """All rows in files of so many as one COPY may take; the same in every run."""
    draw = random.Random(1)
    customers = max(1, rows // ROWS_PER_CUSTOMER)
    lines = {
        "customer": (f"{id}\t{draw.randrange(COUNTRIES)}\n" for id in range(customers)),
        "sale": (f"{id}\t{draw.randrange(customers)}\t{draw.randrange(AMOUNT_MAX)}\t{'x' * 40}\n" for id in range(rows)),
    }
    return [piece for table in lines for piece in pieces_of(table, lines[table], folder)]


def pieces_of(table, lines, folder):
    for number in count():
        text = "".join(islice(lines, ROWS_PER_COPY))
        if not text:
            return
        piece = Piece(table, folder / f"{table}-{number}")
        piece.file.write_text(text)
        yield piece
