"""Transactions of five statements on three rows and a new one, as TPC-B has them, beside PostgreSQL; pgbench is the client of both.

pgbench's own tables cannot be made by its `--initialize`, which writes more rows in one transaction than one of Rhumb may have. These are like them,
with fewer accounts.
"""

from comparison import Comparison
from postgresql import PostgreSQL
from programs import INITDB, PGBENCH, POSTGRES, PSQL
from rhumb import Rhumb
from rows import RowsContender, cases_of, psql

# More than there are connections: each transaction updates a branch, and two of the same one stand in each other's way in any database.
BRANCHES = 20
TELLERS_PER_BRANCH = 10
ACCOUNTS_PER_BRANCH = 20_000
CONNECTIONS = (1, 16)

TABLES = [
    "CREATE TABLE branch (id INT PRIMARY KEY, balance INT, filler TEXT)",
    "CREATE TABLE teller (id INT PRIMARY KEY, branch INT, balance INT, filler TEXT)",
    "CREATE TABLE account (id INT PRIMARY KEY, branch INT, balance INT, filler TEXT)",
    "CREATE TABLE history (teller INT, branch INT, account INT, delta INT, at TIMESTAMP)",
]

SCRIPT = f"""\\set account random(1, {BRANCHES * ACCOUNTS_PER_BRANCH})
\\set branch random(1, {BRANCHES})
\\set teller random(1, {BRANCHES * TELLERS_PER_BRANCH})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE account SET balance = balance + :delta WHERE id = :account;
SELECT balance FROM account WHERE id = :account;
UPDATE teller SET balance = balance + :delta WHERE id = :teller;
UPDATE branch SET balance = balance + :delta WHERE id = :branch;
INSERT INTO history VALUES (:teller, :branch, :account, :delta, CURRENT_TIMESTAMP);
END;
"""


class TpcB(Comparison):
    name = "tpcb"
    summary = f"transactions as of TPC-B over {BRANCHES} branches, one region, beside PostgreSQL"
    programs = (INITDB, POSTGRES, PSQL, PGBENCH)

    def cases(self):
        return cases_of(CONNECTIONS)

    def contenders(self, options, folder):
        script = folder / "tpcb.sql"
        script.write_text(SCRIPT)
        servers = (Rhumb(folder, options.binary, regions=1), PostgreSQL(folder))
        return [TpcBContender(server, script, BRANCHES * ACCOUNTS_PER_BRANCH) for server in servers]


class TpcBContender(RowsContender):
    def load(self):
        psql(self.server.url(), *TABLES)
        filler = "x" * 84
        self.copy("branch", (f"{id}\t0\t{filler}\n" for id in range(1, BRANCHES + 1)))
        self.copy("teller", (f"{id}\t{id % BRANCHES + 1}\t0\t{filler}\n" for id in range(1, BRANCHES * TELLERS_PER_BRANCH + 1)))
        self.copy("account", (f"{id}\t{id % BRANCHES + 1}\t0\t{filler}\n" for id in range(1, self.rows + 1)))
