#!/usr/bin/env python3
"""Makes features.csv and metadata.csv, synthetic samples of patients in six cohorts; --parquet also writes them as Parquet.

Four of twelve abundances are shifted in ill patients, and all of them a little by cohort. Some patients have two samples.
The two files have their rows in different orders, and are joined by the column `run`. Some values of one feature are missing,
and some of the metadata. The same seed gives the same bytes; Parquet needs pandas and pyarrow."""
import csv
import datetime
import math
import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
COHORTS = ["USA", "China", "Ireland", "Germany", "Spain", "Japan"]
TAXA = [f"taxon_{number:02}" for number in range(1, 13)]


def samples(draw):
    day = datetime.date(2024, 1, 1)
    for number in range(240):
        patient = f"p{number:03}" if number % 6 != 5 else f"p{number - 1:03}"
        cohort = COHORTS[number // 40]
        if number % 6 != 5:
            ill = draw.random() < 0.45
            severity = "severe" if ill and draw.random() < 0.4 else "mild" if ill else "none"
            age, shift = draw.randint(12, 80), [draw.gauss(0, 0.6) for _ in TAXA]
        day += datetime.timedelta(days=draw.randint(0, 2))
        effect = [0.9, -0.8, 0.7, -0.6] + [0.0] * 8
        levels = [
            math.exp(1 + COHORTS.index(cohort) * 0.1 + ill * effect[at] + shift[at] + draw.gauss(0, 0.4))
            for at in range(len(TAXA))
        ]
        values = [f"{level:.3f}" for level in levels]
        if draw.random() < 0.05:
            values[6] = ""
        metadata = {
            "run": f"r{number:03}",
            "patient": patient,
            "cohort": cohort,
            "condition": "ill" if ill else "healthy",
            "severity": severity,
            "age": "" if draw.random() < 0.03 else age,
            "antibiotics": "" if draw.random() < 0.03 else str(draw.random() < 0.15).lower(),
            "sampled": day.isoformat(),
        }
        yield metadata, [metadata["run"], *values]


def main():
    draw = random.Random(7)
    rows = list(samples(draw))
    metadata, features = [row[0] for row in rows], [row[1] for row in rows]
    draw.shuffle(features)
    with open(HERE / "metadata.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, metadata[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(metadata)
    with open(HERE / "features.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["run", *TAXA], *features])
    if "--parquet" in sys.argv:
        import pandas

        for name in ["metadata", "features"]:
            pandas.read_csv(HERE / f"{name}.csv").to_parquet(HERE / f"{name}.parquet", index=False)


main()
