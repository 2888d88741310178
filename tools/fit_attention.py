#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the tile model of fused attention to measured context attention and prints it as YAML.

    fit_attention.py attention_context_train.csv.gz attention_prefill_aiconfigurator.csv.gz \\
        --platform h100 --peak 989.4e12 --units 132 --bandwidth 3.35e12 --cached attention_context
    fit_attention.py attention_prefill_aiconfigurator.csv.gz --platform a100_sxm \\
        --peak 312e12 --units 108 --bandwidth 2.039e12 --cached prefill

Model of a forward kernel, for B sequences of S queries (and keys), h heads and g key-value heads of
d elements, causal, with a window of w keys (0: none):

    time  = attention_launch + max(work + attention_traffic rows / b, (rows + keys) / (b memory_share))
    work  = max(longest, total + attention_tail longest)
    total = B h ceil(S / t) tile(mean) / units               t = 128 queries a tile, 16 below 16 queries
    longest = tile(longest keys)
    tile(keys) = t (keys + attention_key_ramp) (per_pair^4 + attention_softmax^4)^(1/4) / rate
    per_pair = 4 d;  rate = peak attention_share / units
    mean  = min(r + edges max(t, u) / 2, S), edges = 2 of a window (2 r < S), else 1;  r: visible keys of a query
    u     = keys computed at a time: the power of two up to --key-elements / d, at most 256; S rounded up to a multiple
    longest keys = min(S, max(2 r, mean))
    rows  = 2 * 2 B h S d bytes (queries, output);  keys = 2 * 2 B g S d bytes
    b     = bandwidth, times last_level_speedup where the bytes of the kernel are no more than --last-level

Rows of tables whose path contains --cached also write keys and values to a paged cache before:

    stream_launch + 2 keys / (b cache_write_share)

The loss is the mean absolute log error. Half of the shapes, chosen by SHA-256, is held out. Left
out: heads wider than 256 elements, which take other kernels, and key-value caches in 8 bits.
"""
import argparse
import csv
import gzip
import hashlib

import numpy as np
from scipy.optimize import differential_evolution, minimize

TILE, SMALL_TILE = 128, 16  # queries; TensorRT-LLM's prompts have no small ones
MOST_KEYS_OF_TILE = 256
WIDEST_HEAD = 256
SAMPLES = 1200  # enough for seven coefficients
COLUMNS = (("batch", "batch_size"), ("new_tokens", "isl"), ("heads", "num_heads"),
           ("kv_heads", "num_key_value_heads"), ("head_dim",), ("window", "window_size"))

# name, bounds, unit
COEFFICIENTS = (
    ("attention_share", (0.3, 1.0), ""),
    ("attention_softmax", (0.0, 1000.0), "FLOP-equivalents of a pair"),
    ("attention_key_ramp", (0.0, 1000.0), "keys"),
    ("attention_tail", (0.0, 1.0), ""),
    ("attention_traffic", (0.0, 4.0), ""),
    ("attention_launch", (1e-6, 20e-6), "s"),
    ("cache_write_share", (0.1, 1.0), ""),
    ("last_level_speedup", (1.0, 6.0), ""),
)


def read_measurements(options):
    """Rows B, S, h, g, d, w, cached and their seconds."""
    rows, seconds = [], []
    for path in options.files:
        cached = float(bool(options.cached) and options.cached in path)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as stream:
            for row in csv.DictReader(stream):
                if not row["platform"].startswith(options.platform) or row["framework"] != options.framework:
                    continue
                if row["platform"][len(options.platform):] not in ("", "_sxm"):
                    continue
                if row.get("kv_dtype", "bfloat16") != "bfloat16" or row["version"] in options.skip_version:
                    continue
                shape = [float(next(row[name] for name in names if name in row)) for names in COLUMNS]
                if shape[4] <= WIDEST_HEAD:
                    rows.append((*shape, cached))
                    seconds.append(float(row["latency_us"]) * 1e-6)
    if not rows:
        raise SystemExit(f"no rows of {options.framework} on {options.platform}")
    return np.array(rows), np.array(seconds)


def held_out(rows, salt):
    """True for the half of the shapes that the fit never sees."""
    keys = [salt + "attention,%d,%d,%d,%d,%d,%d" % tuple(row[:6]) for row in rows]
    return np.array([hashlib.sha256(key.encode()).digest()[0] % 2 == 0 for key in keys])


def attention_time(c, rows, device):
    """Seconds of every row (see the head of this file); c maps coefficient names to values."""
    batch, queries, heads, kv_heads, width, window, cached = rows.T
    window = np.where(window > 0, np.minimum(window, queries), queries)
    visible = window - window**2 / (2 * queries)
    small = (queries < SMALL_TILE) & (device.framework != "trtllm")
    tile = np.where(small, SMALL_TILE, TILE)
    edges = np.where((2 * visible < queries) & ~small, 2, 1)
    most = np.maximum(device.key_elements / width, 1)
    keys = np.minimum(2.0 ** np.floor(np.log2(most)), MOST_KEYS_OF_TILE)
    mean = np.minimum(visible + edges * np.maximum(tile, keys) / 2, np.ceil(queries / keys) * keys)
    longest = np.maximum(mean, np.minimum(queries, 2 * visible))
    per_pair = ((4 * width) ** 4 + c["attention_softmax"] ** 4) ** 0.25
    per_key = tile * per_pair / (device.peak / device.units * c["attention_share"])
    tiles = batch * heads * np.ceil(queries / tile)
    total = tiles * per_key * (mean + c["attention_key_ramp"]) / device.units
    last = per_key * (longest + c["attention_key_ramp"])
    work = np.maximum(last, total + c["attention_tail"] * last)

    def near(size):
        return device.bandwidth * np.where(size <= device.last_level, c["last_level_speedup"], 1.0)

    row_bytes = 2 * 2 * batch * heads * queries * width
    key_bytes = 2 * 2 * batch * kv_heads * queries * width
    memory = (row_bytes + key_bytes) / (near(row_bytes + key_bytes) * device.memory_share)
    traffic = c["attention_traffic"] * row_bytes / near(row_bytes + key_bytes)
    time = c["attention_launch"] + np.maximum(work + traffic, memory)
    write = device.stream_launch + 2 * key_bytes / (near(2 * key_bytes) * c["cache_write_share"])
    return time + cached * write


def fit(rows, seconds, device, free, fixed, seed):
    """Coefficients with the least mean absolute log error."""
    chosen = np.random.default_rng(seed).permutation(len(rows))[:SAMPLES]
    low, high = np.array([bounds for _, bounds, _ in free]).T

    def coefficients(unit_vector):
        values = low + np.clip(unit_vector, 0, 1) * (high - low)
        return {**fixed, **{name: value for (name, _, _), value in zip(free, values)}}

    def loss(unit_vector):
        predicted = attention_time(coefficients(unit_vector), rows[chosen], device)
        return np.mean(np.minimum(np.abs(np.log(predicted / seconds[chosen])), 1.0))

    box = [(0.0, 1.0)] * len(free)
    coarse = differential_evolution(loss, box, maxiter=30, popsize=5, seed=seed, init="sobol", polish=False)
    fine = minimize(loss, coarse.x, method="Nelder-Mead", bounds=box, options={"maxfev": 600})
    return coefficients(fine.x)


def print_errors(predicted, rows, seconds, is_held_out):
    error = np.abs(predicted / seconds - 1) * 100
    queries, width, window = rows[:, 1], rows[:, 4], rows[:, 5]
    parts = {"to 64": queries <= 64, "to 512": (queries > 64) & (queries <= 512),
             "to 2k": (queries > 512) & (queries <= 2048), "longer": queries > 2048,
             "d 64": width == 64, "d 128": width == 128, "d 192+": width > 128, "window": window > 0,
             "all": queries > 0}
    print("# queries        fit: n  median%   mean%  held-out: n  median%   mean%")
    for name, inside in parts.items():
        halves = [error[inside & half] for half in (~is_held_out, is_held_out)]
        if all(half.size for half in halves):
            print(f"# {name:8}" + "".join(f"{half.size:>14}{np.median(half):9.1f}{half.mean():8.1f}" for half in halves))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="CSV (.gz) with the columns of either table")
    parser.add_argument("--platform", required=True, help="h100, a100_sxm, ...")
    parser.add_argument("--framework", default="vllm")
    parser.add_argument("--skip-version", action="append", default=[])
    parser.add_argument("--peak", type=float, required=True, help="dense bf16 FLOP/s")
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--bandwidth", type=float, required=True, help="bytes/s")
    parser.add_argument("--key-elements", type=float, default=0, help="attention_key_elements, published")
    parser.add_argument("--memory-share", type=float, default=1, help="elementwise_share, of attention bound by memory")
    parser.add_argument("--last-level", type=float, default=0, help="bytes of the last-level cache; 0: not counted")
    parser.add_argument("--stream-launch", type=float, default=2.5e-6, help="s")
    parser.add_argument("--cached", default="", help="part of the paths of tables that write a cache")
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=VALUE", help="do not fit NAME")
    parser.add_argument("--salt", default="", help="hashed with every shape: other halves")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fixed = {name: float(value) for name, value in (item.split("=") for item in options.fix)}
    rows, seconds = read_measurements(options)
    if not rows[:, 6].any():
        fixed.setdefault("cache_write_share", 1.0)
    if options.last_level == 0:
        fixed.setdefault("last_level_speedup", 1.0)
    free = [entry for entry in COEFFICIENTS if entry[0] not in fixed]
    is_held_out = held_out(rows, options.salt)
    found = fit(rows[~is_held_out], seconds[~is_held_out], options, free, fixed, options.seed)
    print_errors(attention_time(found, rows, options), rows, seconds, is_held_out)
    print("kernels:")
    for name, _, unit in COEFFICIENTS:
        text = f"{found[name] * 1e6:.3g} us" if unit == "s" else f"{found[name]:.3g}"
        print(f"  {name}: {text}" + (f"  # {unit}" if unit and unit != "s" else ""))


if __name__ == "__main__":
    main()
