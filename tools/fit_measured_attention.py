#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits fused attention of a library to what tools/measure_gpu.py attention measured and prints it as YAML.

    fit_measured_attention.py attention.csv --library cudnn --head-step 64
    fit_measured_attention.py attention.csv --library cudnn --head-step 64 --backward
    fit_measured_attention.py attention.csv --library flash2 --wave-quantisation 1

The model is that of docs/models/compute.md (fused attention) with attention_wave_quantisation w and attention_head_step s:

    F     = 4 d (backward 10 d), d rounded up to a multiple of s
    total = (tiles / U + w (ceil(tiles / U) - tiles / U)) tile(mean), with (1 - w) tail, if all tiles are as long
    rows  = bytes of queries and output (backward twice), d as it is

Rows are prompts and, of flash2, decodes whose keys are not split (1.6 tiles a unit and more: heads that share keys are
rows of one tile). The loss is the mean absolute log error, at most 1 each, of prompts and of decodes: half and half. Half
of the shapes, chosen by SHA-256, is held out.
"""
import argparse
import csv
import hashlib

import numpy as np
from scipy.optimize import differential_evolution, minimize

TILE = 128  # queries
MOST_SPLIT_TILES = 1.6  # a unit
SHAPE = ("batch", "heads", "kv_heads", "head_dim", "queries", "keys", "causal")

# name, bounds, unit
COEFFICIENTS = (
    ("share", (0.2, 1.0), ""),
    ("softmax", (0.0, 2000.0), "FLOP-equivalents of a pair"),
    ("key_ramp", (0.0, 1000.0), "keys"),
    ("tail", (0.0, 2.0), ""),
    ("traffic", (0.0, 8.0), ""),
    ("launch", (1e-6, 40e-6), "s"),
)


def read_rows(options):
    """Shapes (columns of SHAPE) and seconds of the library's rows."""
    with open(options.file, encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["library"] == options.library
                and row["backward"] == str(options.backward).lower()
                and (row["queries"] == row["keys"] or is_whole(row, options))]
    if not rows:
        raise SystemExit(f"{options.file}: no rows of {options.library}")
    shapes = [[float(row[name] == "true" if name == "causal" else row[name]) for name in SHAPE] for row in rows]
    return np.array(shapes), np.array([float(row["latency_us"]) * 1e-6 for row in rows])


def is_whole(row, options):
    """A decode whose keys FlashAttention-2 does not split."""
    tiles = int(row["batch"]) * int(row["kv_heads"])
    return options.library == "flash2" and row["queries"] == "1" and tiles >= MOST_SPLIT_TILES * options.units


def held_out(rows, options):
    """True for the half of the shapes that the fit never sees."""
    keys = [f"{options.library},{int(options.backward)}," + ",".join(f"{value:g}" for value in row) for row in rows]
    return np.array([hashlib.sha256(key.encode()).digest()[0] % 2 == 0 for key in keys])


def attention_time(c, rows, options):
    """Seconds of every row."""
    batch, heads, kv_heads, width, queries, keys, causal = rows.T
    tile_heads = np.where(queries < keys, kv_heads, heads)
    visible = np.where(causal > 0, keys / 2, keys)
    step = options.head_step or 1
    per_pair = (10 if options.backward else 4) * np.ceil(width / step) * step
    per_key = TILE * (per_pair**4 + c["softmax"]**4)**0.25 * options.units / (options.peak * c["share"])
    mean = np.maximum(visible, np.minimum(visible + TILE / 2, keys))
    most = np.maximum(mean, np.minimum(keys, 2 * visible))
    waves = batch * tile_heads * np.ceil(queries / TILE) / options.units
    whole = np.where(most == mean, options.wave_quantisation, 0)
    total = (waves + whole * (np.ceil(waves) - waves)) * (mean + c["key_ramp"]) * per_key
    longest = (most + c["key_ramp"]) * per_key
    row_bytes = (4 if options.backward else 2) * 2 * batch * heads * queries * width
    key_bytes = (2 if options.backward else 1) * 4 * batch * kv_heads * keys * width
    memory = (row_bytes + key_bytes) / (options.bandwidth * options.memory_share)
    work = np.maximum(longest, total + (1 - whole) * c["tail"] * longest) + c["traffic"] * row_bytes / options.bandwidth
    return c["launch"] + np.maximum(work, memory)


def fit(rows, seconds, options):
    low, high = np.array([bounds for _, bounds, _ in COEFFICIENTS]).T

    def coefficients(unit_vector):
        values = low + np.clip(unit_vector, 0, 1) * (high - low)
        return {name: value for (name, _, _), value in zip(COEFFICIENTS, values)}

    decodes = rows[:, SHAPE.index("queries")] < rows[:, SHAPE.index("keys")]

    def loss(unit_vector):
        error = np.abs(np.log(attention_time(coefficients(unit_vector), rows, options) / seconds))
        return sum(np.mean(np.minimum(error[kind], 1.0)) for kind in (decodes, ~decodes) if kind.any())

    box = [(0.0, 1.0)] * len(COEFFICIENTS)
    coarse = differential_evolution(loss, box, maxiter=200, popsize=12, seed=options.seed, polish=False)
    return coefficients(minimize(loss, coarse.x, method="Nelder-Mead", options={"maxfev": 3000}).x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="attention.csv of tools/measure_gpu.py")
    parser.add_argument("--library", required=True, choices=("cudnn", "flash2"))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--head-step", type=int, default=0, help="attention_head_step, seen in the rows")
    parser.add_argument("--wave-quantisation", type=float, default=0, help="attention_wave_quantisation, of the kernel")
    parser.add_argument("--peak", type=float, default=989.4e12, help="dense bf16 FLOP/s; default: H100 SXM")
    parser.add_argument("--units", type=int, default=132)
    parser.add_argument("--bandwidth", type=float, default=3.35e12, help="bytes/s")
    parser.add_argument("--memory-share", type=float, default=0.85, help="elementwise_share")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows, seconds = read_rows(options)
    is_held_out = held_out(rows, options)
    found = fit(rows[~is_held_out], seconds[~is_held_out], options)
    error = 100 * np.abs(attention_time(found, rows, options) / seconds - 1)
    decodes = rows[:, SHAPE.index("queries")] < rows[:, SHAPE.index("keys")]
    for what, kind in (("prompts", ~decodes), ("decodes", decodes)):
        for name, half in (("fitted", kind & ~is_held_out), ("held out", kind & is_held_out)):
            if half.any():
                print(f"# {what} {name:9} {half.sum():4} shapes: median {np.median(error[half]):.1f} %"
                      f"  mean {error[half].mean():.1f} %")
    print(f"attention_{options.library}{'_backward' if options.backward else ''}:")
    for name, _, unit in COEFFICIENTS:
        field = "attention_backward_share" if name == "share" and options.backward else f"attention_{name}"
        text = f"{found[name] * 1e6:.3g} us" if unit == "s" else f"{found[name]:.3g}"
        print(f"  {field}: {text}" + (f"  # {unit}" if unit and unit != "s" else ""))


if __name__ == "__main__":
    main()
