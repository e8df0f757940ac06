"""What a comparison is: contenders that do the same work, in cases that differ by one number."""

from dataclasses import dataclass, field

PER_SECOND = "/s"
SECONDS = "s"
SHARE = "last/second minute"


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    # How many connections, or requests in a pipeline; nothing for a case of which there is one kind.
    size: int = 0
    unit: str = PER_SECOND


@dataclass(frozen=True)
class Figure:
    """One measurement: what is compared, in the unit of its case, and what else the client said."""

    value: float
    details: dict = field(default_factory=dict)


class Contender:
    """A server and the client that loads and measures it."""

    def __init__(self, server):
        self.server = server

    def load(self):
        """Makes the data, once, before anything is measured."""

    def measure(self, case, seconds):
        """The figure of a run of about so many seconds."""
        raise NotImplementedError


class Comparison:
    name = ""
    # For `--list`.
    summary = ""
    # What has to be installed.
    programs = ()

    # What happens before there are data.
    preparation = "starting the servers"

    # Only when asked for by name: it takes longer than all others together.
    by_name_only = False

    def cases(self):
        raise NotImplementedError

    def warmup(self, options):
        """Seconds of each case before the first round, or none."""
        return options.warmup

    def rounds(self, options):
        return options.rounds

    def contenders(self, options, folder):
        """Rhumb, and the system beside which it stands, both with their data below the folder, not yet started."""
        raise NotImplementedError
