"""A cluster of three members of etcd on the loopback, with the settings that it comes with: a commit is on the disks of two of them."""

import json
import urllib.error
import urllib.request

from programs import ETCD
from server import Server, free_ports, output

MEMBERS = 3


class Etcd(Server):
    name = "etcd"

    def __init__(self, folder):
        super().__init__(folder)
        ports = free_ports(2 * MEMBERS)
        self.clients, self.peers = ([f"http://127.0.0.1:{port}" for port in part] for part in (ports[:MEMBERS], ports[MEMBERS:]))

    def commands(self):
        members = ",".join(f"member{number}={peer}" for number, peer in enumerate(self.peers))
        for number, (client, peer) in enumerate(zip(self.clients, self.peers)):
            yield [
                ETCD.path(), "--name", f"member{number}", "--data-dir", self.folder / f"member{number}",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", members, "--initial-cluster-state", "new",
            ]

    def is_ready(self):
        return all(is_healthy(client) for client in self.clients)

    def endpoints(self):
        return ",".join(client.removeprefix("http://") for client in self.clients)

    def settings(self):
        return {"version": output(ETCD.path(), "--version").splitlines()[0], "commands": [process.args for process in self.processes]}


def is_healthy(client):
    """Has it a leader?"""
    try:
        with urllib.request.urlopen(f"{client}/health", timeout=5) as answer:
            return json.load(answer)["health"] == "true"
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
