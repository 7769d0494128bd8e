"""Prints the tables of docs/benchmark.md from the directories of rehearsals.

    rehearsals.py DIR...
"""

import json
import pathlib
import sys

STRATEGIES = {
    "advice": "this advice, after its probes",
    "periodic_release": "`periodic_release`, `NumHolds < 4`",
    "release_all": "release all",
    "rules": "rules for hold codes alone",
    "best_possible": "best possible",
}

# Hold subcode of jobs that used more memory than requested.


def share(part):
    """Returns the share of a proportion; `None` without cases."""
    return part["count"] / part["of"] if part["of"] else None


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def line(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*cells):
    line(*cells)
    line(*["---"] * len(cells))


def strategies(tallies):
    """Prints what each strategy keeps and wastes on each log, and on the mean of the simulated pools."""
    head("log", "strategy", "successes kept", "runs wasted", "kind of fault right")
    columns = ("kept", "wasted", "kind_right")
    for name, tally in tallies.items():
        for key, words in STRATEGIES.items():
            line(name, words, *(percent(share(tally[key][column])) for column in columns))
    pools = [tally for name, tally in tallies.items() if name.startswith("pool-")]
    for key, words in STRATEGIES.items() if len(pools) > 1 else ():
        line(f"mean of {len(pools)} pools", words, *(percent(mean([share(tally[key][column]) for tally in pools])) for column in columns))


def answers(tallies):
    """Prints how many answers each log has, and how right the firm ones and the releases were."""
    head("log", "answers", "firm answers", "right", "releases right", "faults that stay: told release", "tried")
    for name, tally in tallies.items():
        releases = [kind["right"] for kind in tally["kinds"] if kind["action"] == "release"]
        total = {key: sum(right[key] for right in releases) for key in ("count", "of")}
        shares = (tally["firm"], tally["firm_right"], total, tally["permanent_released"], tally["permanent_probed"])
        line(name, f"{tally['answers']:,}", *(percent(share(part)) for part in shares))


def main(directories):
    paths = [pathlib.Path(directory) for directory in directories]
    tallies = {path.name: json.loads((path / "rehearsal.json").read_text()) for path in paths}
    strategies(tallies)
    print()
    answers(tallies)


if __name__ == "__main__":
    main(sys.argv[1:])
