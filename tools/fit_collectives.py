#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the protocols of a network dimension to measured collectives and prints them as YAML.

    fit_collectives.py node nccl_aiconfigurator.csv.gz --platform a100_sxm --bandwidth 300e9
    fit_collectives.py node nccl_aiconfigurator.csv.gz --platform h100_sxm --bandwidth 450e9 \\
        --without all_reduce/8/4194304
    fit_collectives.py node nccl_vidur.csv.gz --platform a100_dgx --bandwidth 300e9 \\
        --fix LL=8.39/0.841/0.0242/0
    fit_collectives.py network --bandwidth 25e9 --efficiency 0.94

node: rings inside one node behind a switch. A collective of S bytes on p ranks takes the fastest of
the protocols LL, LL128 and Simple (NCCL's names), each

    launch + n step_latency + (n + local_copy) (S / p) / (efficiency bandwidth)

with n = 2(p-1) steps for all_reduce, p-1 for all_gather and reduce_scatter. LL has no local copy.
--without COLLECTIVE/RANKS/BYTES leaves out what is larger than BYTES, where another algorithm runs
(NVLink SHARP of H100 nodes). --fix keeps a protocol as it is, for measurements whose small sizes are
hidden by the host (nccl_vidur has a floor of 40 us).

network: rings of 8 GPUs in each of k nodes with one adapter per GPU, to the published table of
achieved shares of the adapters' bandwidth (aliyun/SimAI, NCCL on ConnectX-6 class nodes). The ring
goes in lockstep: each of its 2(8k-1) steps takes as long as that between nodes. --efficiency is
the published rate of the adapter over its nominal one; only latencies are fitted.

Errors are relative; the loss is a soft-L1 norm of log ratios. The measurements are few, so all of them
are fitted; the held-out errors are those of five further fits, each without the fifth that it predicts
(folds by SHA-256 of the key).
"""
import argparse
import collections
import csv
import gzip
import hashlib

import numpy as np
from scipy.optimize import least_squares

MICRO = 1e-6
LARGE = 4 << 20  # bytes from which bandwidth shows; these count twice in the fit
STARTS = 8
FOLDS = 5

# name, start values: launch us, step us, share of bandwidth, local copies (None: not fitted)
PROTOCOLS = (
    ("LL", (7.0, 1.0, 0.05, None)),
    ("LL128", (9.0, 1.2, 0.45, 0.5)),
    ("Simple", (25.0, 4.0, 0.75, 0.4)),
)

# Achieved share of n x 25 GB/s by message size and nodes (aliyun/SimAI, busbw ratio of rings).
NETWORK_SIZES = (16 << 20, 256 << 20, 1 << 30, 16 << 30)
NETWORK_NODES = (2, 4, 8, 16, 32, 64, 128)
NETWORK_SHARES = (
    (0.32, 0.24, 0.13, 0.05, 0.044, 0.021, 0.0087),
    (0.85, 0.77, 0.69, 0.57, 0.387, 0.209, 0.103),
    (0.92, 0.93, 0.90, 0.76, 0.74, 0.56, 0.31),
    (0.96, 0.96, 0.96, 0.96, 0.957, 0.958, 0.919),
)
GPUS_PER_NODE = 8


def fold_of(key):
    text = "fit_collectives," + ",".join(map(str, key))
    return hashlib.sha256(text.encode()).digest()[0] % FOLDS


def steps(collective, ranks):
    return 2 * (ranks - 1) if collective == "all_reduce" else ranks - 1


def in_half_octaves(points):
    """One point per half octave of size: dense sweeps must not outvote sparse ones."""
    bins = collections.defaultdict(list)
    for size, seconds in points:
        bins[round(2 * np.log2(size))].append((np.log(size), np.log(seconds)))
    for _, members in sorted(bins.items()):
        yield tuple(np.exp(np.mean(members, axis=0)))


def read_measurements(options):
    """{(collective, ranks, bytes): seconds} of one node, medians over repeats."""
    limits = {}
    for text in options.without:
        collective, ranks, size = text.split("/")
        limits[collective, int(ranks)] = int(size)
    sweeps = collections.defaultdict(lambda: collections.defaultdict(list))
    with (gzip.open if options.file.endswith(".gz") else open)(options.file, "rt") as stream:
        for row in csv.DictReader(stream):
            if row["platform"] != options.platform or row.get("dtype", "half") != "half":
                continue
            if row["collective"] not in ("all_reduce", "all_gather", "reduce_scatter"):
                continue
            if row.get("gpus_per_node", row["n_gpus"]) != row["n_gpus"]:
                continue  # several nodes
            if options.version and row.get("nccl_version") != options.version:
                continue
            group = row["collective"], int(row["n_gpus"])
            size = int(row["bytes"])
            if size <= limits.get(group, size):
                latency = float(row.get("latency_us") or row["time_us_median"])
                sweeps[group][size].append(latency * MICRO)
    if not sweeps:
        raise SystemExit(f"no rows of platform {options.platform!r} in {options.file}")
    return {
        (*group, size): seconds
        for group, sizes in sorted(sweeps.items())
        for size, seconds in in_half_octaves((s, np.median(t)) for s, t in sorted(sizes.items()))
    }


def free_starts(fixed):
    """Start values of everything that is fitted, protocol by protocol."""
    return [value for name, starts in PROTOCOLS if name not in fixed
            for value in starts if value is not None]


def unpack(vector, fixed):
    """Log values of free_starts -> {protocol: (launch us, step us, efficiency, local copy)}."""
    values = iter(np.exp(vector))
    return {
        name: fixed.get(name)
        or tuple(0.0 if start is None else next(values) for start in starts)
        for name, starts in PROTOCOLS
    }


def node_time(protocols, key, bandwidth):
    collective, ranks, size = key
    n = steps(collective, ranks)
    return min(
        (launch + n * step) * MICRO + (n + copy) * size / ranks / (efficiency * bandwidth)
        for launch, step, efficiency, copy in protocols.values()
    )


def fit(residuals, start):
    """The best of several random starts; deterministic."""
    best = None
    for seed in range(STARTS):
        spread = np.random.default_rng(seed).normal(0, 0.3 if seed else 0.0, len(start))
        result = least_squares(residuals, np.log(start) + spread, loss="soft_l1", f_scale=0.1)
        if best is None or result.cost < best.cost:
            best = result
    return best.x


def print_errors(label, errors):
    if len(errors):
        errors = 100 * np.abs(errors)
        print(f"# {label:9} n {len(errors):4}  mean {errors.mean():5.1f} %  median "
              f"{np.median(errors):5.1f} %  largest {errors.max():5.1f} %")


def fit_and_report(measured, start, predict, weight):
    """Coefficients fitted to all of {key: seconds}; prints errors. predict(log values, key)."""

    def fit_to(keys):
        def residuals(vector):
            return np.array([weight(key) * np.log(predict(vector, key) / measured[key]) for key in keys])

        return fit(residuals, start)

    found = fit_to(measured)
    print_errors("fit", np.array([predict(found, key) / measured[key] - 1 for key in measured]))
    unseen = []
    for fold in range(FOLDS):
        other = fit_to([key for key in measured if fold_of(key) != fold])
        unseen += [predict(other, key) / measured[key] - 1 for key in measured if fold_of(key) == fold]
    print_errors("held out", np.array(unseen))
    return found


def fit_node(options):
    measured = read_measurements(options)
    fixed = {}
    for text in options.fix:
        name, values = text.split("=")
        fixed[name] = tuple(map(float, values.split("/")))
    found = fit_and_report(
        measured, free_starts(fixed),
        predict=lambda vector, key: node_time(unpack(vector, fixed), key, options.bandwidth),
        weight=lambda key: 2 if key[2] > LARGE else 1)
    print("protocols:")
    for name, (launch, step, efficiency, copy) in unpack(found, fixed).items():
        print(f"  - {{name: {name}, launch: {launch:.3g} us, step_latency: {step:.3g} us, "
              f"efficiency: {efficiency:.3g}, local_copy: {copy:.3g}}}")


def network_time(vector, key, options):
    launch, step = np.exp(vector)
    nodes, size = key
    ranks = GPUS_PER_NODE * nodes
    latency = launch + 2 * (ranks - 1) * step
    adapters = GPUS_PER_NODE * options.bandwidth * options.efficiency
    return latency * MICRO + 2 * (ranks - 1) / ranks * size / adapters


def fit_network(options):
    measured = {}
    for size, shares in zip(NETWORK_SIZES, NETWORK_SHARES):
        for nodes, share in zip(NETWORK_NODES, shares):
            ranks = GPUS_PER_NODE * nodes
            adapters = GPUS_PER_NODE * options.bandwidth * share
            measured[nodes, size] = 2 * (ranks - 1) / ranks * size / adapters
    found = fit_and_report(measured, [30.0, 20.0],
                           predict=lambda vector, key: network_time(vector, key, options),
                           weight=lambda key: 1)
    launch, step = np.exp(found)
    print("protocols:")
    print(f"  - {{name: Simple, launch: {launch:.3g} us, step_latency: {step:.3g} us, "
          f"efficiency: {options.efficiency:.3g}}}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    node = commands.add_parser("node", help="one node behind a switch")
    node.add_argument("file", help="CSV (.gz): platform, collective, n_gpus, bytes, latency_us or "
                                   "time_us_median")
    node.add_argument("--platform", required=True)
    node.add_argument("--version", default="", help="nccl_version to keep; default all")
    node.add_argument("--bandwidth", type=float, required=True, help="bytes/s per GPU and direction")
    node.add_argument("--without", action="append", default=[], metavar="COLLECTIVE/RANKS/BYTES")
    node.add_argument("--fix", action="append", default=[],
                      metavar="NAME=LAUNCH/STEP/EFFICIENCY/COPY", help="do not fit this protocol")
    node.set_defaults(run=fit_node)
    network = commands.add_parser("network", help="several nodes")
    network.add_argument("--bandwidth", type=float, required=True, help="bytes/s per adapter")
    network.add_argument("--efficiency", type=float, required=True, help="share of it that is reached")
    network.set_defaults(run=fit_network)
    return parser.parse_args()


def main():
    options = parse_arguments()
    options.run(options)


if __name__ == "__main__":
    main()
