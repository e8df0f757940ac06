"""Runs a comparison: all servers are up, each case is warmed up, and the contenders take turns, each round in the other order."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from comparison import Case, Figure
from summary import ratios, spread


@dataclass(frozen=True)
class Run:
    """A figure and its place in the comparison."""

    round: int
    system: str
    case: Case
    figure: Figure


@dataclass(frozen=True)
class Result:
    name: str
    # Rhumb first.
    systems: list
    settings: dict
    cases: list
    # In the order in which they ran.
    runs: list

    def spread(self, case, system):
        return spread(self.values(case, system))

    def ratio(self, case):
        """Rhumb's share of the other."""
        return spread(ratios(*(self.values(case, system) for system in self.systems)))

    def values(self, case, system):
        """By round."""
        return [run.figure.value for run in self.runs if run.case == case and run.system == system]


def steps(comparison, options):
    """How many steps of progress `compare` takes: preparation, then data, warming up and rounds of two contenders."""
    warmups = 1 if comparison.warmup(options) else 0
    return 3 + 2 * len(comparison.cases()) * (warmups + comparison.rounds(options))


def compare(comparison, options, progress):
    with TemporaryDirectory(prefix="rhumb-compare-", dir=options.folder) as folder, ExitStack() as running:
        # Also for the user that PostgreSQL runs as.
        Path(folder).chmod(0o755)
        progress.step(f"{comparison.name}: {comparison.preparation}")
        contenders = comparison.contenders(options, Path(folder))
        for contender in contenders:
            running.enter_context(contender.server)
        for contender in contenders:
            progress.step(f"{comparison.name}: data for {contender.server.name}")
            contender.load()
        for case in comparison.cases() if comparison.warmup(options) else []:
            for contender in contenders:
                progress.step(f"{comparison.name}: warming up, {case.name}, {contender.server.name}")
                contender.measure(case, comparison.warmup(options))

        runs, rounds = [], comparison.rounds(options)
        for number in range(1, rounds + 1):
            for case in comparison.cases():
                for contender in in_turn(contenders, number):
                    progress.step(f"{comparison.name}: round {number} of {rounds}, {case.name}, {contender.server.name}")
                    runs.append(Run(number, contender.server.name, case, contender.measure(case, options.seconds)))
        return Result(
            comparison.name,
            [contender.server.name for contender in contenders],
            {contender.server.name: contender.server.settings() for contender in contenders},
            comparison.cases(),
            runs,
        )


def in_turn(contenders, number):
    """The first goes first in the first round, the last in the second."""
    return contenders if number % 2 else contenders[::-1]
