"""The machine on which figures were measured."""

import os
import platform
import time
from collections import Counter
from pathlib import Path

from summary import spread

SYNCS = 200
TICKS = os.sysconf("SC_CLK_TCK")
BLOCK_BYTES = 4096


def describe(folder):
    return {
        "cores": os.cpu_count(),
        "processor": field_of("/proc/cpuinfo", "model name"),
        "memory": field_of("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "filesystem": filesystem_of(folder),
        # Above zero, others use the machine too.
        "load_average": os.getloadavg(),
        "sync_ms": vars(spread(sync_times_ms(folder))),
    }


def line(described):
    load, sync = described["load_average"][0], described["sync_ms"]["median"]
    return f"{described['cores']} cores, kernel {described['kernel']}, {described['filesystem']}, load {load:.1f}, a sync takes {sync:.2f} ms"


def sync_times_ms(folder):
    """How long the disk takes to make a block at the end of a file durable."""
    times = []
    file = os.open(folder, os.O_WRONLY | os.O_TMPFILE)
    try:
        for _ in range(SYNCS):
            os.write(file, bytes(BLOCK_BYTES))
            start = time.perf_counter()
            os.fdatasync(file)
            times.append((time.perf_counter() - start) * 1000)
    finally:
        os.close(file)
    return times


def filesystem_of(folder):
    """Its type: that of the innermost mount which holds the folder."""
    folder = os.path.realpath(folder)
    with open("/proc/mounts") as mounts:
        kinds = {point: kind for _, point, kind, *_ in (line.split() for line in mounts)}
    return kinds[max((point for point in kinds if os.path.commonpath([point, folder]) == point), key=len)]


def process_bytes(pid):
    """Memory of a process and of all that it has started, what they share counted once."""
    try:
        own = int(field_of(f"/proc/{pid}/smaps_rollup", "Pss").split()[0]) << 10
    except (OSError, AttributeError):
        return 0  # it has ended meanwhile
    return own + sum(process_bytes(child) for child in children_of(pid))


def children_of(pid):
    try:
        return [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    except OSError:
        return []


def thread_seconds(pid):
    """Processor time so far of the threads of a process and of all that it has started, by their names."""
    seconds = Counter()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        user, system = fields.split()[11:13]
        seconds[name] += (int(user) + int(system)) / TICKS
    for child in children_of(pid):
        seconds += thread_seconds(child)
    return seconds


def processor_seconds():
    """What all processors did so far; `steal` is what the machine beneath this one gave to others."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    with open("/proc/stat") as lines:
        return {name: int(ticks) / TICKS for name, ticks in zip(names, next(lines).split()[1:])}


def folder_bytes(folder):
    """What the files in it take of the disk."""
    total = 0
    for path in Path(folder).rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            pass  # it was removed meanwhile
    return total


def field_of(path, name):
    with open(path) as lines:
        return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
