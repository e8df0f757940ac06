"""Full load for many minutes: updates of any of many rows, beside PostgreSQL. Does the last minute do what the second did, and in how much space?"""

import re
import threading
from collections import Counter
from statistics import mean

from client import ClientFailed, measured
from comparison import SHARE, Case, Comparison, Figure
from machine import folder_bytes, process_bytes, processor_seconds, thread_seconds
from postgresql import PostgreSQL
from programs import INITDB, PGBENCH, POSTGRES, PSQL
from rhumb import Rhumb
from rows import UPDATE, RowsContender, report, script_of

MINUTE = 60
# How often pgbench reports. The last report may be missing: it is due when the clients end.
REPORT_SECONDS = 5
LOOK_SECONDS = 10
# A transaction that takes longer is counted.
LATE_MS = 100


class Sustained(Comparison):
    name = "sustained"
    summary = "UPDATE of one row of --rows at 64 connections for --minutes, one region, beside PostgreSQL"
    programs = (INITDB, POSTGRES, PSQL, PGBENCH)
    by_name_only = True

    def cases(self):
        return [Case("64 connections", 64, SHARE)]

    def warmup(self, options):
        """The first minute is that."""
        return 0

    def rounds(self, options):
        return 1

    def contenders(self, options, folder):
        script = script_of(folder, UPDATE, options.rows)
        servers = (Rhumb(folder, options.binary, regions=1), PostgreSQL(folder))
        return [SustainedContender(server, script, options.rows, options.minutes) for server in servers]


class SustainedContender(RowsContender):
    def __init__(self, server, script, rows, minutes):
        super().__init__(server, script, rows)
        self.minutes = minutes

    def measure(self, case, _seconds):
        with Looks(self.server) as looks:
            printed = measured(self.pgbench(case, self.minutes * MINUTE, f"--progress={REPORT_SECONDS}", f"--latency-limit={LATE_MS}"), with_progress=True)
        return sustained(printed, looks.samples)


class Looks:
    """Looks at a server's memory, folder and threads, and at the processors, from time to time, as long as the `with` block runs."""

    def __init__(self, server):
        self.server, self.samples, self.ended = server, [], threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def look(self):
        while not self.ended.wait(LOOK_SECONDS):
            pids = [process.pid for process in self.server.processes]
            self.samples.append({
                "memory_mib": sum(map(process_bytes, pids)) >> 20,
                "folder_mib": folder_bytes(self.server.folder) >> 20,
                "processors_seconds": processor_seconds(),
                "threads_seconds": sum(map(thread_seconds, pids), Counter()),
            })


def sustained(printed, samples):
    """What pgbench tells, by minutes and at the end."""
    reports = [(float(at), float(tps)) for at, tps in re.findall(r"^progress: ([\d.]+) s, ([\d.]+) tps", printed, re.MULTILINE)]
    minutes = {}
    for at, tps in reports:
        minutes.setdefault(int((at - REPORT_SECONDS / 2) // MINUTE), []).append(tps)
    by_minute = [mean(minutes[minute]) for minute in sorted(minutes)]
    if len(by_minute) < 3:
        raise ClientFailed(f"pgbench has told of {len(by_minute)} minutes only:\n{printed}", printed)
    late = re.search(r"latency limit: (\d+)", printed)
    return Figure(
        by_minute[-1] / by_minute[1],
        {"tps_by_minute": by_minute, f"above_{LATE_MS}_ms": int(late[1]), "looks": samples, "tps": report(printed).value},
    )
