"""The arithmetic of a comparison: medians, spreads and ratios."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def spread(values):
    return Spread(median(values), min(values), max(values))


def ratios(ours, theirs):
    """Round by round: a machine's own speed swings within minutes, so only runs that follow each other compare."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]
