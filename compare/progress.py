"""The line that says what is being done: overwritten on a terminal, one after another in a log."""

import sys
import time


class Progress:
    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()

    def step(self, text):
        """What begins now."""
        self.done += 1
        line = f"[{self.done}/{self.total}, {time.monotonic() - self.start:.0f} s] {text}"
        # Back to the beginning of the line, and what stood there is erased.
        sys.stderr.write(f"\r\x1b[K{line}" if sys.stderr.isatty() else f"{line}\n")
        sys.stderr.flush()

    def clear(self):
        """Before something else is printed."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
