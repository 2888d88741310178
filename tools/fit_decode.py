#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what decode attention of a machine takes to measured kernels and prints it as YAML.

    fit_decode.py attention_decode_aiconfigurator.csv.gz --platform h100_sxm --last-level 50e6 \\
        --machine configs/machines/dgx-h100.yaml

Model, for B sequences of one query and n keys (of a window: as many as it has), h heads and g key-value heads of d
elements in 16 bits (src/machine/compute/compute_model.h; the matrix units never limit such rows):

    time  = attention_launch + ((bytes / (bandwidth elementwise_share))^3 + (B g attention_start / units)^3)^(1/3) + write
    bytes = 4 B d (g n + h);  write = stream_launch + 8 B g d / (bandwidth cache_write_share)

Two kinds of rows: keys and values above twice the last cache (others are warm in the tables), which weigh four times, and
sequences of up to 128 keys that fill the device, whose time is that of the starts. The loss is the mean absolute log
error. Half of the shapes, chosen by SHA-256, is held out. With --cut-for H keys were cut as FlashAttention-3 cuts those
of H heads (prepare_varlen_num_blocks in vllm-project/flash-attention), so that few units worked; what a unit alone reads is
fitted then, to keys and values above twice the cache, and share and start stay the machine's. Left out: heads wider than 256 elements, 8-bit caches and,
with --no-windows-of-groups, windows of heads that share keys, which FlashAttention-2 does not pack into one tile.
"""
import argparse
import csv
import gzip
import hashlib
import math
import re
import statistics

WIDEST_HEAD = 256
SHORT = 128  # keys
WEIGHTS = {"memory": 4, "starts": 1}  # of the kinds of rows
KEYS = ("batch", "step", "heads", "kv_heads", "head_dim", "window")


def coefficients(path):
    """Those of a machine file that the fit leaves as they are, in seconds and bytes per second."""
    with open(path, encoding="utf-8") as stream:
        text = stream.read()

    def number(pattern):
        return float(re.search(pattern, text).group(1))

    return {
        "units": number(r"units: (\d+)"),
        "bandwidth": number(r"bandwidth: ([\d.]+) GB/s, latency") * 1e9,
        "launch": number(r"attention_launch: ([\d.]+) us") * 1e-6,
        "stream": number(r"stream_launch: ([\d.]+) us") * 1e-6,
        "write": number(r"cache_write_share: ([\d.]+)"),
        "share": number(r"decode: .*elementwise_share: ([\d.]+)"),
        "start": number(r"decode: .*attention_start: ([\d.]+) us") * 1e-6,
    }


def parts(keys, width, batch, heads, units):
    """Of the keys of one head of each of `batch` sequences, as FlashAttention-3 cuts those of `heads`."""
    blocks = math.ceil(keys / (80 if width > 128 else 128))
    return max(1, min(32, math.ceil(blocks / math.ceil(1.1 * batch * heads * blocks / units))))


def read_rows(options, machine):
    """Of each row: seconds, bytes, share of starts, the rest of the time, kind and half."""
    rows = []
    with gzip.open(options.file, "rt") as stream:
        for row in csv.DictReader(stream):
            if row["platform"] != options.platform or row["kv_dtype"] != "bfloat16":
                continue
            batch, step, heads, groups, width, window = (int(row[key]) for key in KEYS)
            if width > WIDEST_HEAD or (options.no_windows_of_groups and window and heads > groups):
                continue
            keys = min(step + 1, window) if window else step + 1
            read = 4 * batch * groups * width * keys
            starts = batch * groups / machine["units"]
            if read > 2 * options.last_level:
                kind = "memory"
            elif keys <= SHORT and starts >= 1:
                kind = "starts"
            else:
                continue
            write = 8 * batch * groups * width / (machine["bandwidth"] * machine["write"])
            key = "decode " + ",".join(row[name] for name in KEYS)
            rows.append(
                {
                    "seconds": float(row["latency_us"]) * 1e-6,
                    "bytes": read + 4 * batch * heads * width,
                    "starts": starts,
                    "busy": batch * groups * parts(keys, width, batch, options.cut_for or groups, machine["units"]),
                    "rest": machine["launch"] + machine["stream"] + write,
                    "kind": kind,
                    "held_out": hashlib.sha256(key.encode()).digest()[0] % 2 == 0,
                }
            )
    return rows


def errors(rows, machine, share, start):
    """Log of predicted over measured."""
    found = []
    for row in rows:
        memory = row["bytes"] / (machine["bandwidth"] * share)
        time = row["rest"] + (memory**3 + (row["starts"] * start) ** 3) ** (1 / 3)
        found.append(math.log(time / row["seconds"]))
    return found


def fit(rows, machine):
    """Steps of 0.004 of the share and of 0.1 us of the start with the least loss: coarsely, then near the best."""
    fitted = [row for row in rows if not row["held_out"]]

    def loss(point):
        share, start = point[0] / 250, point[1] * 1e-7
        total = 0
        for kind, weight in WEIGHTS.items():
            found = errors([row for row in fitted if row["kind"] == kind], machine, share, start)
            total += weight * statistics.mean(min(1, abs(error)) for error in found)
        return total

    share, start = min(((share, start) for share in range(140, 250, 5) for start in range(0, 80, 5)), key=loss)
    near = ((share + i, max(0, start + j)) for i in range(-4, 5) for j in range(-4, 5))
    return min(near, key=loss)


def report_units(rows, machine):
    """Prints what a unit alone reads: the GB/s with the least median error of the fitted half."""

    def found(rate, held_out):
        errors_of = []
        for row in rows:
            if row["kind"] == "memory" and row["held_out"] == held_out:
                read = min(machine["bandwidth"] * machine["share"], rate * 1e9 * min(row["busy"], machine["units"]))
                time = ((row["bytes"] / read) ** 3 + (row["starts"] * machine["start"]) ** 3) ** (1 / 3)
                errors_of.append(abs((row["rest"] + time) / row["seconds"] - 1))
        return errors_of

    rate = min(range(30, 100), key=lambda rate: statistics.median(found(rate, False)))
    for name, held_out in (("fitted", False), ("held out", True)):
        half = found(rate, held_out)
        print(f"# memory  {name:9} {len(half):5} shapes: median {100 * statistics.median(half):.1f} %")
    print(f"# a unit alone: {rate} GB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="CSV.gz of decode attention")
    parser.add_argument("--platform", required=True)
    parser.add_argument("--machine", required=True, help="machine file")
    parser.add_argument("--last-level", type=float, required=True, help="bytes")
    parser.add_argument("--no-windows-of-groups", action="store_true")
    parser.add_argument("--cut-for", type=int, default=0, help="key heads that keys were cut for; 0: their own")
    options = parser.parse_args()
    machine = coefficients(options.machine)
    rows = read_rows(options, machine)
    if options.cut_for:
        report_units(rows, machine)
        return
    share, start = fit(rows, machine)
    for kind in ("memory", "starts"):
        for held_out in (False, True):
            half = [row for row in rows if row["kind"] == kind and row["held_out"] == held_out]
            found = [abs(math.exp(error) - 1) for error in errors(half, machine, share / 250, start * 1e-7)]
            name = "held out" if held_out else "fitted"
            print(f"# {kind:7} {name:9} {len(half):5} shapes: median {100 * statistics.median(found):.1f} %")
    print(f"decode: {{elementwise_share: {share / 250:.3g}, attention_start: {start / 10:.2g} us}}")


if __name__ == "__main__":
    main()
