"""Runs the server of ci/proof/wandb_server.py as a process, for the checks of ci/proof/tracking."""
import json
import os
import subprocess
import sys
import time
import urllib.request

KEY = "canary" + "0" * 34


def get_json(address, document=None):
    """Returns the JSON answer at an address; posts the document, if any."""
    body = None if document is None else json.dumps(document).encode()
    with urllib.request.urlopen(urllib.request.Request(address, body)) as answer:
        return json.load(answer)


class WandbServer:
    """The server, for the length of a block; `place` is the prefix of its files."""

    def __init__(self, place):
        self.port_file = f"{place}.port"

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "ci/proof/wandb_server.py", self.port_file])
        while not (os.path.exists(self.port_file) and open(self.port_file).read().endswith("\n")):
            time.sleep(0.05)
        self.address = f"http://127.0.0.1:{open(self.port_file).read().strip()}"
        self.environment = os.environ | {"WANDB_BASE_URL": self.address, "WANDB_API_KEY": KEY}
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def state(self):
        return get_json(f"{self.address}/state")

    def control(self, **wishes):
        """Simulates buttons on the pages, and outages of the server."""
        get_json(f"{self.address}/control", wishes)

    def ask(self, query, **variables):
        return get_json(f"{self.address}/graphql", {"query": query, "variables": variables})
