"""Results as a table and as JSON."""

from comparison import PER_SECOND, SECONDS, SHARE

BETTER = {PER_SECOND: "more", SECONDS: "less", SHARE: "more"}


def table(result):
    """A line for each case: the median of each system and the ratio, each with the least and the most in brackets."""
    ours, theirs = result.systems
    lines = [["", "", ours, theirs, f"{ours}/{theirs}"]]
    for case in result.cases:
        spreads = [*(result.spread(case, system) for system in result.systems), result.ratio(case)]
        lines.append([case.name, case.unit, *map(shown, spreads)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    legend = ", ".join(dict.fromkeys(f"{case.unit}: {BETTER[case.unit]} is better" for case in result.cases))
    return "\n".join([f"{result.name}; {legend}", *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)])


def shown(spread):
    return f"{significant(spread.median)} ({significant(spread.low)}–{significant(spread.high)})"


def significant(value):
    """Three digits, without an exponent: 12,345 as 12,300."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def as_document(result):
    """What JSON can hold: every figure, in the order in which they were measured, and the summary that the table shows."""
    return {
        "name": result.name,
        "settings": result.settings,
        "summary": [
            {
                "case": case.name,
                "unit": case.unit,
                "systems": {system: vars(result.spread(case, system)) for system in result.systems},
                "ratio": vars(result.ratio(case)),
            }
            for case in result.cases
        ],
        "runs": [
            {"round": run.round, "system": run.system, "case": run.case.name, "unit": run.case.unit, "value": run.figure.value, **run.figure.details}
            for run in result.runs
        ],
    }
