"""Reads a dashboard with Grafana's own types (grafana-foundation-sdk): each key must be known to them, and keep its value.

    grafana_dashboard.py FILE
"""

import json
import sys

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def differences(ours, theirs, place=""):
    """Yields the places where a key or a value of `ours` is not in `theirs`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from differences(value, theirs.get(key), f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{place}[{at}]")
    elif ours != theirs:
        yield f"{place}: {ours!r} is {theirs!r}"


plugins.register_default_plugins()
with open(sys.argv[1]) as file:
    given = json.load(file)
dashboard = Dashboard.from_json(given)
unknown = list(differences(given, json.loads(JSONEncoder(sort_keys=True).encode(dashboard))))
assert not unknown, unknown
kinds = [type(panel.options).__module__.rsplit(".", 1)[-1] for panel in dashboard.panels]
assert kinds and all(kinds), kinds
print(f"{len(kinds)} panels: {', '.join(sorted(set(kinds)))}")
