#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what grouped GEMMs and moves of rows cost beyond plain GEMMs to measured MoE layers; prints YAML.

    fit_moe.py moe_blackwell_hopper.csv.gz --platform h100 --machine configs/machines/dgx-h100.yaml \\
        --dtype fp8 --kernel moe_torch_flow_cutlass

A layer is that of `orrery moe`: five kernels for T tokens, R rows on the most loaded rank, A experts
that have any, each with ceil(R / A):

    3 stream_launch + 2 * 2 (T + R) H / (bandwidth permute_share)         rows to experts and back
    + 2 R (inner + outputs of fc1) / (bandwidth elementwise_share)        activation
    + the tile model of fit_gemm.py for both products, A times, K not split, with further
      grouped_launch and grouped_k_ramp

    R = T topk / ep (power_law: times greatest_load, below), at most T min(topk, experts / ep)

The GEMM coefficients are the machine file's. The loss is the mean absolute log error. Half of the
shapes, chosen by SHA-256, is held out. Needs numpy, scipy and PyYAML.
"""
import argparse
import csv
import gzip
import hashlib
import types

import numpy as np
import yaml
from scipy.optimize import differential_evolution, minimize

from fit_gemm import TILES

SAMPLES = 900
WIDTH = {"bfloat16": 2, "fp8": 1, "fp8_block": 1, "nvfp4": 0.5}
FORMAT = {"fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "fp4"}
# name, bounds, unit
COEFFICIENTS = (
    ("grouped_k_ramp", (0.0, 5000.0), "elements of K"),
    ("grouped_launch", (0.0, 40e-6), "s"),
    ("permute_share", (0.05, 1.0), ""),
)
FIELDS = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")


def quantity(text):
    """SI value of '2 us', '8000 GB/s', '989.4 TFLOP/s' or a number."""
    scale = {"us": 1e-6, "GB/s": 1e9, "TB/s": 1e12, "TFLOP/s": 1e12}
    value, _, unit = str(text).partition(" ")
    return float(value) * scale.get(unit, 1.0)


def read_device(path, dtype):
    """Rates of the device and its coefficients for the type, in SI units."""
    with open(path) as stream:
        device = yaml.safe_load(stream)["device"]
    kernels = dict(device["kernels"])
    kernels.update(kernels.get(FORMAT.get(dtype, ""), {}))
    coefficients = {name: quantity(value) for name, value in kernels.items() if not isinstance(value, dict)}
    peak = device["peak"][{"bfloat16": "bf16", "nvfp4": "fp4"}.get(dtype, "fp8")]
    return types.SimpleNamespace(units=device["units"], bandwidth=quantity(device["memory"][0]["bandwidth"]),
                                 peak=quantity(peak), width=WIDTH[dtype], c=coefficients)


def read_measurements(options):
    rows, seconds = [], []
    with gzip.open(options.file, "rt") as stream:
        for row in csv.DictReader(stream):
            if (row["platform"], row["moe_dtype"], row["kernel_source"]) == (
                    options.platform, options.dtype, options.kernel):
                rows.append([float(row[name]) for name in FIELDS] + [float(row["distribution"] != "balanced")])
                seconds.append(float(row["latency_us"]) * 1e-6)
    if not rows:
        raise SystemExit("no such rows")
    return np.array(rows), np.array(seconds)


def held_out(rows):
    keys = ["moe,%d,%d,%d,%d,%d,%d,%d" % tuple(row[:7]) for row in rows]
    return np.array([hashlib.sha256(key.encode()).digest()[0] % 2 == 0 for key in keys])


def greatest_load(tokens, experts, ep):
    """Load of the fullest of ep ranks over the mean: experts' loads have density x^-1, 1 to 0.8 tokens."""
    greatest = np.maximum(1.0, np.log(np.maximum(2.0, 0.8 * tokens)))
    spread = np.sqrt(np.maximum(0.0, greatest / 2 - 1))
    return np.minimum(np.minimum(1 + spread * np.sqrt(2 * np.log(ep) * ep / experts), greatest), ep)


def grouped_time(found, experts, m, n, k, device):
    """Tile model of fit_gemm.py without split K, `experts` times."""
    c = device.c
    load = c["gemm_tile_load"]
    rate = device.peak / device.units * c["gemm_peak_share"] * np.sqrt(1 + (load * 384 / 32768) ** 2)
    traffic = device.width * (m * k + k * n) + max(device.width, 2) * m * n
    best = np.full(len(m), np.inf)
    for bm, bn in TILES:
        waves = experts * np.ceil(m / bm) * np.ceil(n / bn) / device.units
        full = np.floor(waves)
        q = np.where(full > 0, c["gemm_wave_quantisation"], 1.0)
        tail = np.where(waves > full, q + (1 - q) * (waves - full), 0.0)
        compute = (k + c["gemm_k_ramp"] + found["grouped_k_ramp"]) * 2 * np.hypot(bm * bn, load * (bm + bn)) / rate
        memory = experts * traffic / (device.bandwidth * c["gemm_memory_share"]) / waves
        best = np.minimum(best, full * np.maximum(compute, memory)
                          + np.maximum(compute * tail, memory * (waves - full)))
    return c["gemm_launch"] + found["grouped_launch"] + best


def moe_time(found, rows, device):
    tokens, hidden, inner, topk, experts, tp, ep, uneven = rows.T
    local = experts / ep
    inner = inner / tp
    load = np.where(uneven > 0, greatest_load(tokens, experts, ep), 1.0)
    routed = np.maximum(1.0, np.minimum(tokens * topk / ep * load, tokens * np.minimum(topk, local)))
    busy = np.minimum(local, np.ceil(routed))
    each = np.ceil(routed / busy)
    time = grouped_time(found, busy, each, 2 * inner, hidden, device)
    time += grouped_time(found, busy, each, hidden, inner, device)
    moved = 2 * 2 * (tokens + routed) * hidden / found["permute_share"]
    activation = 2 * routed * 3 * inner / device.c["elementwise_share"]
    return time + 3 * device.c["stream_launch"] + (moved + activation) / device.bandwidth


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="CSV.gz: platform, kernel_source, moe_dtype, " + ", ".join(FIELDS) + ", latency_us")
    parser.add_argument("--platform", required=True)
    parser.add_argument("--machine", required=True, help="machine file with GEMM coefficients")
    parser.add_argument("--dtype", required=True, choices=sorted(WIDTH))
    parser.add_argument("--kernel", default="moe_torch_flow_cutlass")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    device = read_device(options.machine, options.dtype)
    rows, seconds = read_measurements(options)
    is_held_out = held_out(rows)
    chosen = np.random.default_rng(options.seed).permutation(np.flatnonzero(~is_held_out))[:SAMPLES]
    low, high = np.array([bounds for _, bounds, _ in COEFFICIENTS]).T

    def coefficients(unit_vector):
        values = low + np.clip(unit_vector, 0, 1) * (high - low)
        return {name: value for (name, _, _), value in zip(COEFFICIENTS, values)}

    def loss(unit_vector):
        error = np.abs(np.log(moe_time(coefficients(unit_vector), rows[chosen], device) / seconds[chosen]))
        return np.mean(np.minimum(error, 1.0))

    box = [(0.0, 1.0)] * len(COEFFICIENTS)
    coarse = differential_evolution(loss, box, maxiter=25, popsize=5, seed=options.seed, init="sobol", polish=False)
    fine = minimize(loss, coarse.x, method="Nelder-Mead", bounds=box, options={"maxfev": 400})
    found = coefficients(fine.x)
    error = np.abs(moe_time(found, rows, device) / seconds - 1)[is_held_out] * 100
    print(f"# held out: {len(error)}  median {np.median(error):.1f} %  mean {error.mean():.1f} %")
    for name, _, unit in COEFFICIENTS:
        text = f"{found[name] * 1e6:.3g} us" if unit == "s" else f"{found[name]:.3g}"
        print(f"  {name}: {text}" + (f"  # {unit}" if unit and unit != "s" else ""))


if __name__ == "__main__":
    main()
