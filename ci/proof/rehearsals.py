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
MEMORY = 102


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


def firm_beside_memory(path):
    """Returns how many firm answers were right, without those about jobs that used more memory than requested."""
    total = {"count": 0, "of": 0}
    with open(path / "answers.jsonl") as file:
        for answer in map(json.loads, file):
            if answer["firmness"] == "firm" and (answer["hold_code"] not in (21, 34) or answer["hold_subcode"] != MEMORY):
                right = is_right(answer)
                total["count"] += right is True
                total["of"] += right is not None
    return total


def is_right(answer):
    """Returns if an answer was right; `None` if that is unknown."""
    now, passing = answer["succeeds_now"], answer["is_passing"]
    if answer["action"] in ("release", "probe"):
        return now
    if answer["action"] == "later":
        return passing
    passes = now if passing is None else passing
    return None if passes is None else not passes


def answers(tallies, paths):
    """Prints how many answers each log has, and how right the firm ones and the releases were."""
    head("log", "answers", "firm answers", "right", "right, without memory", "releases right", "faults that stay: told release", "tried")
    for (name, tally), path in zip(tallies.items(), paths):
        releases = [kind["right"] for kind in tally["kinds"] if kind["action"] == "release"]
        total = {key: sum(right[key] for right in releases) for key in ("count", "of")}
        shares = (tally["firm"], tally["firm_right"], firm_beside_memory(path), total, tally["permanent_released"], tally["permanent_probed"])
        line(name, f"{tally['answers']:,}", *(percent(share(part)) for part in shares))


def main(directories):
    paths = [pathlib.Path(directory) for directory in directories]
    tallies = {path.name: json.loads((path / "rehearsal.json").read_text()) for path in paths}
    strategies(tallies)
    print()
    answers(tallies, paths)


if __name__ == "__main__":
    main(sys.argv[1:])
