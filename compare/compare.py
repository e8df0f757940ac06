#!/usr/bin/env python3
"""Holds Rhumb beside PostgreSQL, etcd and Redis on this machine, in one run, and prints medians, spreads and ratios.

All servers of a comparison run from its beginning to its end, with their data in a temporary folder. They are measured in turns, each round in the
other order, by the same client where there is one for both. Every system syncs a write before it answers.
"""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import machine
import report
from analytic import Analytic
from client import ClientFailed
from programs import missing
from progress import Progress
from quotas import Quotas
from regions import ThreeRegions
from rounds import compare, steps
from rows import PointSelect, Update
from server import ServerFailed
from sustained import Sustained
from tpcb import TpcB
from tpcc import TpcC

COMPARISONS = {
    comparison.name: comparison
    for comparison in (PointSelect(), Update(), TpcB(), TpcC(), ThreeRegions(), Quotas(), Analytic(), Sustained())
}

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parent.parent / "target"))

EXAMPLES = """examples:
  compare/compare.py                                    all comparisons, the binary of `make release`
  compare/compare.py update redis --rounds 9            two of them, more rounds
  compare/compare.py sustained                          does the load of a minute last for twenty? Takes 45 minutes
  compare/compare.py --binary target/debug/rhumb --seconds 2 --rounds 2 --rows 20000
                                                        does everything work? Not for figures: the build is slow
  compare/compare.py --folder /mnt/nvme                 data of all systems on this disk
"""


def main():
    options = arguments()
    if options.list:
        for comparison in COMPARISONS.values():
            print(f"{comparison.name:14} {comparison.summary}{'; only by name' if comparison.by_name_only else ''}")
        return
    chosen = [COMPARISONS[name] for name in options.comparison or by_default()]
    check(chosen, options)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)

    document = {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "options": vars(options),
        "machine": machine.describe(options.folder),
        "comparisons": [],
    }
    print(machine.line(document["machine"]))
    progress = Progress(sum(steps(comparison, options) for comparison in chosen))
    for comparison in chosen:
        result = compare(comparison, options, progress)
        progress.clear()
        print(f"\n{report.table(result)}", flush=True)
        # After each, so that an interrupted run leaves those that it has finished.
        document["comparisons"].append(report.as_document(result))
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document, indent=1, default=str) + "\n")
    print(f"\nall figures: {options.json}")


def arguments():
    parser = argparse.ArgumentParser(
        prog="compare/compare.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("comparison", nargs="*", help="which, by name [default: all but those that --list says so of]")
    parser.add_argument("--list", action="store_true", help="show the comparisons")
    parser.add_argument("--binary", type=Path, default=TARGET / "release/rhumb", help="Rhumb [default: %(default)s]")
    parser.add_argument("--rounds", type=positive, default=5, help="how often each system is measured in each case [default: %(default)s]")
    parser.add_argument("--seconds", type=positive, default=10, help="how long a measurement takes, about [default: %(default)s]")
    parser.add_argument("--warmup", type=positive, default=5, help="seconds of each case before the first round [default: %(default)s]")
    parser.add_argument("--rows", type=positive, default=1_000_000, help="of `analytic` and `sustained` [default: %(default)s]")
    parser.add_argument("--minutes", type=minutes, default=20, help="how long `sustained` loads each system [default: %(default)s]")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where data lie meanwhile [default: %(default)s]")
    parser.add_argument("--json", type=Path, default=TARGET / "compare/figures.json", help="where all figures go [default: %(default)s]")
    options = parser.parse_args()
    if unknown := set(options.comparison) - set(COMPARISONS):
        parser.error(f"there is no comparison {', '.join(sorted(unknown))}; there are {', '.join(COMPARISONS)}")
    options.binary, options.build = options.binary.absolute(), TARGET.absolute() / "compare"
    return options


def by_default():
    return [name for name, comparison in COMPARISONS.items() if not comparison.by_name_only]


def minutes(text):
    """The second is held against the last."""
    number = int(text)
    if number < 3:
        raise ValueError
    return number


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def check(chosen, options):
    """Whatever would fail later, before anything starts."""
    problems = missing(program for comparison in chosen for program in comparison.programs)
    if not os.access(options.binary, os.X_OK):
        problems.append(f"{options.binary} is not here: `make release` builds it, or name another with --binary")
    if not options.folder.is_dir():
        problems.append(f"{options.folder} is not a folder")
    elif machine.filesystem_of(options.folder) == "tmpfs":
        problems.append(f"{options.folder} is in memory, where a sync costs nothing: name a folder on a disk with --folder")
    if problems:
        sys.exit("\n".join(problems))


def interrupt(number, _):
    """Ends what runs. Servers are stopped and folders removed on the way out, which a second signal does not interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    try:
        main()
    except (ClientFailed, ServerFailed) as failed:
        sys.exit(f"\n{failed}")
