"""Reads the answers that a proof in a pool has asked for: advice.json, and the kind of each held job in `kinds`, both in HOME.

    answers.py HOME jobs ACTION                    prints the ids of the jobs with this answer
    answers.py HOME commands ACTION KEY [KIND]     prints cause, jobs and command, by KEY (command or then), of the groups with this answer,
                                                   separated by tabs; with KIND, of the groups of such jobs only
    answers.py HOME check STEP KIND=ANSWER[,ANSWER]...   prints all answers, and fails if jobs of a kind have others than these: ACTION or
                                                         ACTION:GROUND
"""

import collections
import json
import sys

home, task, *arguments = sys.argv[1:]
document = json.load(open(f"{home}/advice.json"))
advice = document["advice"]


def read_kinds():
    return {f"{cluster}.{proc}": kind for cluster, proc, kind in (line.split() for line in open(f"{home}/kinds"))}


def jobs(action):
    for job in sorted(one["job"] for one in advice if one["action"] == action):
        print(job)


def commands(action, key, kind=None):
    for group in document["groups"]:
        is_meant = group["action"] == action and group[key]
        if is_meant and (kind is None or read_kinds()[group["jobs"][0]] == kind):
            print(group["cause"], ",".join(group["jobs"]), group[key], sep="\t")


def check(step, *expected):
    allowed = {kind: answers.split(",") for kind, answers in (argument.split("=") for argument in expected)}
    kinds = read_kinds()
    assert {one["job"] for one in advice} == kinds.keys(), "the advice is not about the held jobs"
    assert set(allowed) <= set(kinds.values()), "no job of a kind is held"
    answers = collections.defaultdict(list)
    for one in advice:
        key = kinds[one["job"]], one["action"], one["ground"], one["firmness"] or "-"
        answers[key].append((one["probability"], one["later_probability"]))
    is_right = True
    for (kind, action, ground, firmness), odds in sorted(answers.items()):
        right = not {action, f"{action}:{ground}"}.isdisjoint(allowed.get(kind, [action]))
        is_right &= right
        now, later = map(shown, zip(*odds))
        print(f"{step:44} {kind:8} {len(odds):3} {action:8} {ground:6} {firmness:9} now {now:13} later {later:13}", "" if right else "wrong")
    sys.exit(not is_right)


def shown(values):
    known = [value for value in values if value is not None]
    return f"{min(known):.2f} to {max(known):.2f}" if known else "-"


{"jobs": jobs, "commands": commands, "check": check}[task](*arguments)
