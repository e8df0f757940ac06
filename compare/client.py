"""Clients that measure."""

import subprocess

from comparison import Contender


class ClientFailed(Exception):
    def __init__(self, explanation, printed=""):
        super().__init__(explanation)
        # What the client printed before it failed.
        self.printed = printed


def measured(command, with_progress=False, **options):
    """What the client prints, without what it says meanwhile unless that is asked for; if it fails, all of that is in the error."""
    command = [str(part) for part in command]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    printed = ran.stdout + ran.stderr
    if ran.returncode != 0:
        raise ClientFailed(f"{' '.join(command)}\nended with {ran.returncode}:\n{printed}", printed)
    return printed if with_progress else ran.stdout


class CountedContender(Contender):
    """With a client that is told how many requests to send, and not for how long: so many as the last run did in that time."""

    TRIAL = 2000

    def __init__(self, server):
        super().__init__(server)
        self.rates = {}

    def send(self, case, requests):
        """The figure of a run of so many requests."""
        raise NotImplementedError

    def measure(self, case, seconds):
        if case not in self.rates:
            self.rates[case] = self.send(case, self.TRIAL).value
        figure = self.send(case, max(self.TRIAL, round(self.rates[case] * seconds)))
        self.rates[case] = figure.value
        return figure
