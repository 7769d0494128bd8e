"""Formats the rates of a stage as a Markdown table, and compares them with the recorded rates.

>>> row = {"what": "S, training", "rate": 120000.0, "unit": "samples per CPU-s", "peers": {"plain": 6000.0}}
>>> before = {"what": "S, training", "rate": 90000.0, "unit": "samples per CPU-s", "peers": {"plain": 3000.0}}
>>> ratios(row)
{'plain': 20.0}
>>> print(rows_table([row], [before]))
| | unit | poolcast | plain |
| --- | --- | --- | --- |
| S, training | samples per CPU-s | 120,000 | 6,000 (20x; **was 30x**) |
>>> print(rows_table([row], []))
| | unit | poolcast | plain |
| --- | --- | --- | --- |
| S, training | samples per CPU-s | 120,000 | 6,000 (20x) |
>>> number(0.0046), number(1.337), number(20.04), number(1234.5)
('0.0046', '1.34', '20', '1,234')
"""

# Maximum loss of a ratio, as a share of the recorded one, before it is marked.
MOST_LOST = 0.25


def number(value):
    """Formats a number with the digits that are significant on a shared machine."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.3g}"
    return f"{value:.2g}" if value < 1 else f"{value:.2f}"


def ratios(row):
    """Returns the ratio of our rate to each peer's rate."""
    return {name: row["rate"] / peer for name, peer in row["peers"].items() if peer}


def is_lost(row, before, peer):
    """Returns true if the ratio to `peer` is more than a quarter below the recorded one."""
    recorded = ratios(before).get(peer) if before else None
    return recorded is not None and ratios(row)[peer] < (1 - MOST_LOST) * recorded


def peer_cell(row, before, peer):
    if peer not in row["peers"]:
        return ""
    mark = f"; **was {number(ratios(before)[peer])}x**" if is_lost(row, before, peer) else ""
    return f"{number(row['peers'][peer])} ({number(ratios(row)[peer])}x{mark})"


def rows_table(rows, recorded):
    """Formats the rows of one stage; marks ratios that were better in the `recorded` rows."""
    peers = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    before = {row["what"]: row for row in recorded}
    lines = ["| | unit | " + " | ".join(["poolcast", *peers]) + " |"]
    lines.append("| --- " * (3 + len(peers)) + "|")
    for row in rows:
        cells = [row["what"], row["unit"], number(row["rate"])]
        cells += [peer_cell(row, before.get(row["what"]), peer) for peer in peers]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def stage_section(stage, recorded=None):
    """Formats a stage: a line about the machine, then the table. `recorded` is the recorded stage."""
    head = (
        f"{stage['date']}, {stage['processor']}, {stage['cores']} cores, load {stage['load']}, build {stage['build']}: "
        f"`{stage['command']}`"
    )
    return head + "\n\n" + rows_table(stage["rows"], recorded["rows"] if recorded else [])


def lost_rows(stage, recorded):
    """Returns the names of the marked cells of a stage."""
    before = {row["what"]: row for row in recorded["rows"]} if recorded else {}
    return [
        f"{row['what']}, beside {peer}"
        for row in stage["rows"]
        for peer in row["peers"]
        if is_lost(row, before.get(row["what"]), peer)
    ]
