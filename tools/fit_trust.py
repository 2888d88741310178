#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits how far predictions are from published rows, by cause, and prints configs/trust/errors.yaml.

    for table in TABLES; do   # those of `orrery list tables`
        orrery validate --table $table --json > out/$table.json; done
    fit_trust.py out/*.json > configs/trust/errors.yaml

Model (src/study/trust.h): e = ln(measured / predicted) of a time (of a rate with the sign changed) has four independent
parts, each normal: kind of run, framework, origin of the coefficients, and a rest. Their variances are what maximises the
likelihood of all rows (expectation and maximisation, 300 rounds); the rest of a kind is the variance inside groups of one
table, machine, framework and kind. A combination of kind, framework and origin with rows of its own gets the narrowest interval
that holds HELD of them (of e the narrowest factor, so that one long tail does not widen all), drawn towards -+1.2816 sigma
by the weight 1 / (1 + F / DRAW), F its folds. A fold is one table, machine and first key column (mostly the model); rows of a fold weigh 1 / sqrt(rows of the fold), since they are
wrong together.

Bytes (kinds memory_, reserved_ and driver_ of what is trained) have a model of their own: their errors come from tensors that are left
out, which depends on shapes and settings, so that rows of one machine and table with equal predictions are one fold, and sigma is how far the
nearest HELD_BYTES of a kind are off over 1.2816. A kind without rows has the largest sigma of the others.

Tables in UNSTATED are left out: settings that decide their level (batch, machine, what bound the run) are not published, so
that their errors are those of an assumption. So are the times of UNSTATED_LOADS, whose submitters choose the load.

Printed to standard error: how many rows a fit without their fold covers, in all and by table and machine. DRAW, SPREAD
(intervals of few folds are too narrow: they are widened by 1 + SPREAD / F) and HELD (the narrowest interval suits the rows
that it was chosen on) are chosen so that this is 80 %.
"""
import argparse
import bisect
import collections
import itertools
import json
import math
import sys

MOST = 0.7  # of |e|: what is further off is another cause than those here
ROUNDS = 300
DRAW = 1.0
SPREAD = 1.0
HELD = 0.86
FLOOR = 0.02  # identical settings of two submitters differ by 2.1 % on the median; their memory does not
BYTES = [f"{figure}_{job}" for figure in ("memory", "reserved", "driver") for job in ("adapters", "dense", "experts")]
HELD_BYTES = 0.8
EIGHTY = 1.2815515655446004
UNSTATED = ("training_primus_schedules", "training_primus_projection", "large_runs_recalled", "megatron_sc21_table2")
UNSTATED_LOADS = ("serving_mlperf_v5_1",)
CAUSES = ("kind", "framework", "origin")


class Row:
    def __init__(self, table, row):
        sign = -1 if row["rate"] else 1
        self.table = table
        self.kind, self.framework = row["kind"], row["framework"]
        self.origin, self.machine = row["coefficients"], row["machine"]
        self.e = sign * math.log(row["published"] / row["predicted"])
        self.error = abs(row["predicted"] / row["published"] - 1)
        self.key = row["key"]
        own = f"{row['predicted']:.6g}" if self.kind in BYTES else row["key"].split(" ")[0]
        self.fold = (table, self.machine, own)
        self.weight = 1.0

    def names(self):
        return (self.kind, self.framework, self.origin)


def read(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        for table in [document] if "predictions" in document else document["tables"]:
            if table["table"] in UNSTATED:
                continue
            rows += [
                Row(table["table"], row)
                for row in table["predictions"]
                if row["scored"] and not row["problem"] and row["kind"] and row["predicted"] > 0 and row["published"] > 0
                and (row["rate"] or table["table"] not in UNSTATED_LOADS)
            ]
    sizes = collections.Counter((row.kind in BYTES, row.fold) for row in rows)
    for row in rows:
        row.weight = 1 / math.sqrt(sizes[(row.kind in BYTES, row.fold)])
    return rows


def groups_of(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[(row.table, row.machine, row.framework, row.kind)].append(row)
    return groups


def rests(rows):
    """Variance inside groups, by kind; of kinds with a row each, that of all."""
    sums = collections.defaultdict(lambda: [0.0, 0.0])
    for (_, _, _, kind), group in groups_of(rows).items():
        mean = sum(row.e for row in group) / len(group)
        if len(group) > 1:
            for name in (kind, None):
                sums[name][0] += sum(min(MOST, abs(row.e - mean)) ** 2 for row in group)
                sums[name][1] += len(group) - 1
    every = sums[None][0] / max(1.0, sums[None][1])
    return {kind: sums[kind][0] / sums[kind][1] if sums[kind][1] > 0 else every for kind in {row.kind for row in rows}}


def spreads(rows):
    """Of bytes, by kind: what holds HELD_BYTES of the weight of |e|, over what holds so much of a normal distribution."""
    found = {}
    for kind in BYTES:
        some = sorted((row for row in rows if row.kind == kind), key=lambda row: abs(row.e))
        upto = list(itertools.accumulate(row.weight for row in some))
        if some:
            found[kind] = abs(some[bisect.bisect_left(upto, HELD_BYTES * upto[-1] * (1 - 1e-12))].e) / EIGHTY
    return {kind: found.get(kind, max(found.values())) for kind in BYTES} if found else {}


def variances(rows):
    """By cause and name, with what is left inside groups held fixed; of bytes the spread of each kind alone."""
    bytes_of = spreads(rows)
    rows = [row for row in rows if row.kind not in BYTES]
    rest = rests(rows)
    combinations = collections.defaultdict(lambda: [0.0, 0.0])  # weights and weighted squares of e
    for row in rows:
        combinations[row.names()][0] += row.weight
        combinations[row.names()][1] += row.weight * min(MOST, abs(row.e)) ** 2
    parts = {cause: {name: 0.01 for name in {row.names()[i] for row in rows}} for i, cause in enumerate(CAUSES)}
    for _ in range(ROUNDS):
        sums = {cause: collections.defaultdict(lambda: [0.0, 0.0]) for cause in CAUSES}
        for names, (weight, squares) in combinations.items():
            own = [parts[cause][name] for cause, name in zip(CAUSES, names)]
            total = sum(own) + rest[names[0]]
            for cause, name, part in zip(CAUSES, names, own):
                share = part / total if total > 0 else 0
                sums[cause][name][0] += share * share * squares + weight * part * (1 - share)
                sums[cause][name][1] += weight
        parts = {cause: {name: up / down for name, (up, down) in sums[cause].items()} for cause in CAUSES}
    parts["kind"].update({kind: spread * spread for kind, spread in bytes_of.items()})
    return parts, rest


def narrowest(rows, share):
    """The ends of e, and its median, of the least exp(high) - exp(low) that holds so much of the weight."""
    ordered = sorted(rows, key=lambda row: row.e)
    upto = [0.0, *itertools.accumulate(row.weight for row in ordered)]

    def reached(weight):
        return min(bisect.bisect_left(upto, weight * (1 - 1e-12)), len(ordered)) - 1

    wanted = share * upto[-1]
    first = [i for i in range(len(ordered)) if upto[i] + wanted <= upto[-1] * (1 + 1e-12)]
    pairs = [(ordered[i].e, ordered[reached(upto[i] + wanted)].e) for i in first]
    low, high = min(pairs, key=lambda pair: math.exp(pair[1]) - math.exp(pair[0]))
    return low, min(max(ordered[reached(upto[-1] / 2)].e, low), high), high


class Fit:
    def __init__(self, rows):
        self.parts, self.rest = variances(rows)
        self.cells = {}
        cells = collections.defaultdict(list)
        for row in rows:
            cells[row.names()].append(row)
        for names, cell in sorted(cells.items()):
            folds = len({row.fold for row in cell})
            half = EIGHTY * self.sigma(names)
            wider = 1 + SPREAD / folds
            least, middle, most = narrowest(cell, HELD)
            own = folds / (folds + DRAW)
            low = own * (middle + wider * (least - middle)) - (1 - own) * half
            high = own * (middle + wider * (most - middle)) + (1 - own) * half
            self.cells[names] = (len(cell), low, high)

    def sigma(self, names):
        """What no row has is as uncertain as the most uncertain that one has."""
        if names[0] in BYTES:
            return math.sqrt(self.parts["kind"][names[0]])
        known = [self.parts[cause].get(name, max(self.parts[cause].values())) for cause, name in zip(CAUSES, names)]
        return math.sqrt(sum(known) + self.rest.get(names[0], max(self.rest.values())))

    def bounds(self, names):
        half = EIGHTY * self.sigma(names)
        _, low, high = self.cells.get(names, (0, -half, half))
        return (low, high) if names[0] in BYTES else (min(low, -FLOOR), max(high, FLOOR))


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def cross_validate(rows):
    by_fold = collections.defaultdict(list)
    for row in rows:
        by_fold[row.fold].append(row)
    inside = []  # (row, covered, half width)
    for fold, left_out in by_fold.items():
        fit = Fit([row for row in rows if row.fold != fold])
        for row in left_out:
            low, high = fit.bounds(row.names())
            inside.append((row, low <= row.e <= high, (math.exp(high) - math.exp(low)) / 2))
    return inside


def report(inside):
    def line(name, some):
        covered = sum(hit for _, hit, _ in some) / len(some)
        error = median([row.error for row, _, _ in some])
        width = median([half for _, _, half in some])
        ratio = width / error if error > 0 else math.inf
        print(f"{name:60} {len(some):5} rows, covered {100 * covered:5.1f} %, half width {100 * width:5.1f} %, "
              f"median error {100 * error:5.1f} %, ratio {ratio:4.2f}", file=sys.stderr)

    line("all", inside)
    for key in ("table", "kind"):
        names = sorted({getattr(row, key) for row, _, _ in inside})
        for name in names:
            line(f"{key} {name}", [one for one in inside if getattr(one[0], key) == name])


def write(rows, fit):
    print("# SPDX-License-Identifier: Apache-2.0")
    print("# Errors of predictions by cause: src/study/trust.h. Written by tools/fit_trust.py; do not edit.")
    print(f"floor: {FLOOR}")
    for cause in CAUSES:
        print(f"{cause}s:")
        for name, variance in sorted(fit.parts[cause].items()):
            print(f"  {name}: {math.sqrt(variance):.3f}")
    print("rests:")
    for kind, variance in sorted(fit.rest.items()):
        print(f"  {kind}: {math.sqrt(variance):.3f}")
    print("cells:")
    for (kind, framework, origin), (count, low, high) in fit.cells.items():
        print(f"  - {{kind: {kind}, framework: {framework}, origin: {origin}, rows: {count}, low: {low:.4f}, high: {high:.4f}}}")
    print("validated:")
    for (table, machine, framework, kind), group in sorted(groups_of(rows).items()):
        print(f"  - {{table: {table}, machine: {machine}, kind: {kind}, framework: {framework}, origin: {group[0].origin}, "
              f"rows: {len(group)}, median: {median([row.error for row in group]):.3f}}}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="what `orrery validate --json` printed")
    parser.add_argument("--no-check", action="store_true", help="leave out the cross-validation")
    arguments = parser.parse_args()
    rows = read(arguments.results)
    if not arguments.no_check:
        report(cross_validate(rows))
    write(rows, Fit(rows))


if __name__ == "__main__":
    main()
