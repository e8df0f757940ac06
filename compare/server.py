"""A system under comparison while it runs: its processes and its folder."""

import os
import signal
import socket
import subprocess
import time

READY_SECONDS = 60
STOP_SECONDS = 30


class ServerFailed(Exception):
    pass


class Server:
    """Runs as long as the `with` block around it. Whoever made the folder above removes the data."""

    name = ""
    stop_signal = signal.SIGTERM
    # The user that it runs as, if not the one who compares.
    user = None

    def __init__(self, folder):
        self.folder = folder / self.name.lower()
        self.folder.mkdir()
        self.processes = []

    def __enter__(self):
        try:
            self.prepare()
            for command in self.commands():
                self.processes.append(self.start(command))
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def prepare(self):
        """What is done once in the empty folder."""

    def commands(self):
        """A command for each process."""
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def settings(self):
        """What a reader of the figures has to know of this system, while it runs."""
        raise NotImplementedError

    def start(self, command):
        # In a session of its own, so that Ctrl-C reaches the comparison alone, which then stops all in order.
        with open(self.log(), "a") as log:
            return subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **run_as(self.user)
            )

    def wait_until_ready(self):
        end = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if any(process.poll() is not None for process in self.processes):
                raise ServerFailed(f"{self.name} has ended:\n{self.last_lines()}")
            if time.monotonic() > end:
                raise ServerFailed(f"{self.name} is not ready after {READY_SECONDS} s:\n{self.last_lines()}")
            time.sleep(0.1)

    def stop(self):
        for process in self.processes:
            process.send_signal(self.stop_signal)
        for process in self.processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                # With the processes that it started itself, which are in its session.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes.clear()

    def log(self):
        return self.folder / "log"

    def last_lines(self):
        return "\n".join(self.log().read_text(errors="replace").splitlines()[-20:])


def run_as(user):
    """Options of `subprocess` for another user, or for the same."""
    return {"user": user, "group": user, "extra_groups": []} if user else {}


def free_ports(count):
    """Different ones, on the loopback; somebody else may still take them before the server does."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def output(*command, **options):
    """What a short command prints."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, **options).stdout.strip()
