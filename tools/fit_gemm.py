#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the tile model of GEMM time to measured GEMMs and prints its coefficients as YAML.

    fit_gemm.py gemm_a100.csv.gz --peak 312e12 --units 108 --bandwidth 2.039e12
    fit_gemm.py gemm_h100.csv.gz --peak 989e12 --units 132 --bandwidth 3.35e12
    fit_gemm.py gemm_h100.csv.gz --peak 1979e12 --units 132 --bandwidth 3.35e12 --dtype fp8 \\
        --element-bytes 1 --version trtllm/1.3 --cast --fix gemm_launch=2.5e-6
    fit_gemm.py gemm_blackwell.csv.gz --platform b200 --peak 9000e12 --units 148 --bandwidth 8e12 \\
        --dtype nvfp4 --element-bytes 0.5 --cast --fix gemm_launch=2e-6

Model, for C[m,n] = A[m,k] B[k,n]: the fastest over a short list of output tiles (bm x bn) and
split-K factors s of

    gemm_launch + full * max(compute, memory) + max(compute * tail_c, memory * tail_m) + split

where  tiles    = ceil(m/bm) * ceil(n/bn) * s           output tiles (and K slices) to be computed
       waves    = tiles / units;  full = floor(waves)
       tail_m   = waves - full                          share of the units in the last wave
       tail_c   = 0 if tail_m = 0, 1 if full = 0, else q + (1 - q) * tail_m    q: gemm_wave_quantisation
       compute  = (k/s + gemm_k_ramp) * 2 * sqrt((bm*bn)^2 + (gemm_tile_load*(bm+bn))^2) / rate
       rate     = peak / units * gemm_peak_share * sqrt(1 + (gemm_tile_load*384/32768)^2)
                  so that a 256x128 tile runs at peak * gemm_peak_share
       memory   = (element_bytes * (m*k + k*n) + max(element_bytes, 2) * m*n)
                  / (bandwidth * gemm_memory_share) / waves
       split    = 0 if s = 1, else gemm_split_latency + gemm_split_traffic * 4 * s*m*n / bandwidth

--cast: the rows contain a conversion of A to the narrow type, cast_launch + cast_row k + cast_bytes m k
/ bandwidth (a block of threads walks a row), with three coefficients for each framework of the table: they
belong to the measurement, not to the device. The launch of the GEMM cannot be told from theirs: fix it to
what other types gave. --unaligned: where m is no multiple of 4 the conversion lays its scales out again for
the GEMM (fp8_block of TensorRT-LLM on Blackwell: 15.8 us of small shapes instead of 8.3), with further
coefficients of the same form. Without --cast the rows of one shape are one (--aggregate); with it, one for
each framework.

The loss is the mean absolute log error, averaged per region so that the many small GEMMs do not
outvote the large ones. Half of the shapes, chosen by SHA-256, is held out.
"""
import argparse
import collections
import csv
import gzip
import hashlib

import numpy as np
from scipy.optimize import differential_evolution, minimize

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (16, 64))
MIN_SPLIT_K = 128  # a K slice is not cut thinner than this
MAX_SPLIT_WAVES = 4  # beyond so many waves split-K gains nothing

# name, bounds, unit
COEFFICIENTS = (
    ("gemm_peak_share", (0.3, 1.0), ""),
    ("gemm_tile_load", (0.0, 250.0), "elements"),
    ("gemm_k_ramp", (0.0, 2000.0), "elements of K"),
    ("gemm_wave_quantisation", (0.0, 1.0), ""),
    ("gemm_memory_share", (0.3, 1.0), ""),
    ("gemm_launch", (0.5e-6, 20e-6), "s"),
    ("gemm_split_latency", (0.0, 50e-6), "s"),
    ("gemm_split_traffic", (0.0, 2.0), ""),
)
CAST = (
    ("cast_launch", (0.0, 30e-6), "s"),
    ("cast_row", (0.0, 2.0), "ns per element of a row"),
    ("cast_bytes", (0.0, 16.0), "bytes per element of A"),
)
UNALIGNED = tuple((name.replace("cast", "unaligned"), *rest) for name, *rest in CAST)
ALIGNED_ROWS = 4

# Weight of a region's mean error in the loss. Every shape lies in exactly one region.
REGIONS = {
    "large": (3.0, lambda m, n, k: np.minimum(np.minimum(m, n), k) >= 1024),
    "thin": (1.0, lambda m, n, k: (m >= 1024) & (np.minimum(n, k) < 1024)),
    "medium": (1.5, lambda m, n, k: (m >= 128) & (m < 1024)),
    "small": (1.0, lambda m, n, k: m < 128),
}
SAMPLES_PER_REGION = 500  # enough for eight coefficients, keeps a fit below a minute


def read_measurements(options, aggregate):
    """Rows m, n, k and number of framework (0 without --cast), their seconds, the frameworks."""
    latencies = collections.defaultdict(list)
    for path in options.files:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as stream:
            for row in csv.DictReader(stream):
                if (row.get("dtype") or row["gemm_dtype"]) != options.dtype:
                    continue
                if options.platform and (row.get("platform") or row["device"]) != options.platform:
                    continue
                if not f"{row['framework']}/{row['version']}".startswith(options.version):
                    continue
                key = (*(int(row[field]) for field in "mnk"), row["framework"] if options.cast else "")
                latencies[key].append(float(row["latency_us"]) * 1e-6)
    if not latencies:
        raise SystemExit(f"no rows of dtype {options.dtype!r}, version {options.version!r}")
    frameworks = sorted({key[3] for key in latencies})
    rows = np.array([(*key[:3], frameworks.index(key[3])) for key in sorted(latencies)], float)
    seconds = [np.exp(aggregate(np.log(latencies[key]))) for key in sorted(latencies)]
    return rows, np.array(seconds), frameworks


def held_out(shapes, salt):
    """True for the half of the shapes that the fit never sees."""
    keys = [salt + "fit_gemm,%d,%d,%d" % tuple(shape[:3]) for shape in shapes]
    return np.array([hashlib.sha256(key.encode()).digest()[0] % 2 == 0 for key in keys])


def split_factors(tiles, k, units):
    """Split-K candidates: 1, 2, 3, 4 and the factor that fills the units once."""
    deepest = np.maximum(1, k // MIN_SPLIT_K)
    few = tiles < MAX_SPLIT_WAVES * units
    for factor in (1, 2, 3, 4):
        yield np.where(few, np.minimum(factor, deepest), 1)
    yield np.minimum(np.maximum(1, units // tiles), deepest)


def gemm_time(c, shapes, device):
    """Seconds of every shape (see the head of this file); c maps coefficient names to values."""
    m, n, k, framework = shapes.T
    units, bandwidth = device.units, device.bandwidth
    load = c["gemm_tile_load"]
    rate = device.peak / units * c["gemm_peak_share"] * np.sqrt(1 + (load * 384 / 32768) ** 2)
    traffic = device.element_bytes * (m * k + k * n) + max(device.element_bytes, 2) * m * n
    memory_total = traffic / (bandwidth * c["gemm_memory_share"])
    best = np.full(len(m), np.inf)
    for bm, bn in TILES:
        tiles = np.ceil(m / bm) * np.ceil(n / bn)
        per_k = 2 * np.hypot(bm * bn, load * (bm + bn)) / rate
        for split in split_factors(tiles, k, units):
            waves = tiles * split / units
            full = np.floor(waves)
            tail_m = waves - full
            q = np.where(full > 0, c["gemm_wave_quantisation"], 1.0)
            tail_c = np.where(tail_m > 0, q + (1 - q) * tail_m, 0.0)
            compute = (k / split + c["gemm_k_ramp"]) * per_k
            memory = memory_total / waves
            time = full * np.maximum(compute, memory)
            time += np.maximum(compute * tail_c, memory * tail_m)
            reduction = c["gemm_split_latency"] + c["gemm_split_traffic"] * 4 * split * m * n / bandwidth
            best = np.minimum(best, time + np.where(split > 1, reduction, 0.0))
    time = c["gemm_launch"] + best
    for i, name in enumerate(device.frameworks):
        for kind, rows in (("cast", framework == i), ("unaligned", (framework == i) & (m % ALIGNED_ROWS > 0))):
            launch, row, moved = (c.get(f"{kind}_{part} {name}", 0.0) for part in ("launch", "row", "bytes"))
            time += np.where(rows, launch + row * 1e-9 * k + moved * m * k / bandwidth, 0.0)
    return time


def fit(shapes, seconds, device, free, fixed):
    """Coefficients with the least weighted mean absolute log error."""
    generator = np.random.default_rng(device.seed)
    chosen, weights = [], []
    for weight, inside in REGIONS.values():
        rows = generator.permutation(np.flatnonzero(inside(*shapes.T[:3])))[:SAMPLES_PER_REGION]
        chosen.append(rows)
        weights.append(np.full(len(rows), weight / max(1, len(rows))))
    chosen, weights = np.concatenate(chosen), np.concatenate(weights)
    low, high = np.array([bounds for _, bounds, _ in free]).T

    def coefficients(unit_vector):
        values = low + np.clip(unit_vector, 0, 1) * (high - low)
        return {**fixed, **{name: value for (name, _, _), value in zip(free, values)}}

    def loss(unit_vector):
        predicted = gemm_time(coefficients(unit_vector), shapes[chosen], device)
        error = np.abs(np.log(predicted / seconds[chosen]))
        return np.sum(weights * np.minimum(error, 1.0)) / np.sum(weights)  # 1.0: outliers

    box = [(0.0, 1.0)] * len(free)
    coarse = differential_evolution(
        loss, box, maxiter=device.generations, popsize=10 if device.generations > 25 else 6, seed=device.seed,
        init="sobol", polish=False
    )
    most = {"maxfev": 3000 if device.generations > 25 else 600}
    fine = minimize(loss, coarse.x, method="Nelder-Mead", bounds=box, options=most)
    print(f"# loss of the fitted half: {fine.fun:.4f}")
    return coefficients(fine.x)


def print_errors(predicted, shapes, seconds, is_held_out):
    """Median and mean absolute relative error and mean log ratio (bias), in percent."""
    error = np.abs(predicted / seconds - 1) * 100
    bias = np.log(predicted / seconds) * 100
    regions = {name: inside(*shapes.T[:3]) for name, (_, inside) in REGIONS.items()}
    regions["all"] = np.ones(len(seconds), bool)
    print("# region    fit: n  median%   mean%  held-out: n  median%   mean%   bias%")
    for name, inside in regions.items():
        line = f"# {name:8}"
        for half, width in ((inside & ~is_held_out, 8), (inside & is_held_out, 13)):
            if half.any():
                line += f"{half.sum():>{width}}{np.median(error[half]):9.1f}{error[half].mean():8.1f}"
        print(line + (f"{bias[inside].mean():8.1f}" if inside.any() else ""))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="CSV (.gz): framework, version, dtype, m, n, k, latency_us")
    parser.add_argument("--peak", type=float, required=True, help="dense FLOP/s of this dtype")
    parser.add_argument("--units", type=int, required=True, help="units that compute one tile each (SMs)")
    parser.add_argument("--bandwidth", type=float, required=True, help="memory bandwidth, bytes/s")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--platform", default="", help="keep rows of this platform or device only")
    parser.add_argument("--element-bytes", type=float, default=2)
    parser.add_argument("--version", default="", help="keep framework/version with this prefix only")
    parser.add_argument("--aggregate", choices=("median", "min"), default="median", help="over versions")
    parser.add_argument("--cast", action="store_true", help="the rows include a cast of A to this dtype")
    parser.add_argument("--unaligned", action="store_true", help="the cast costs more where m is no multiple of 4")
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=VALUE", help="do not fit NAME")
    parser.add_argument("--salt", default="", help="hashed with every shape: other halves")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generations", type=int, default=25, help="of the search; over 25: wider and finer, too")
    return parser.parse_args()


def main():
    options = parse_arguments()
    fixed = {name: float(value) for name, value in (item.split("=") for item in options.fix)}
    aggregate = {"median": np.median, "min": np.min}[options.aggregate]
    shapes, seconds, options.frameworks = read_measurements(options, aggregate)
    casts = [
        (f"{name} {framework}", *rest)
        for framework in options.frameworks
        for name, *rest in CAST + (UNALIGNED if options.unaligned else ())
    ]
    known = COEFFICIENTS + tuple(casts if options.cast else ())
    if unknown := set(fixed) - {name for name, _, _ in known}:
        raise SystemExit(f"--fix: unknown {sorted(unknown)}; known: {[name for name, _, _ in known]}")
    free = [entry for entry in known if entry[0] not in fixed]

    is_held_out = held_out(shapes, options.salt)
    found = fit(shapes[~is_held_out], seconds[~is_held_out], options, free, fixed)

    predicted = gemm_time(found, shapes, options)
    for i, framework in enumerate(options.frameworks):
        rows = shapes[:, 3] == i
        print(f"# {framework or 'all'}")
        print_errors(predicted[rows], shapes[rows], seconds[rows], is_held_out[rows])
    print("kernels:")
    for name, _, unit in known:
        text = f"{found[name] * 1e6:.3g} us" if unit == "s" else f"{found[name]:.4g}"
        print(f"  {name}: {text}" + (f"  # {unit}" if unit and unit != "s" else ""))


if __name__ == "__main__":
    main()
