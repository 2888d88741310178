#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the all-reduce kernels of serving engines to measurements and prints them as YAML.

    fit_custom_all_reduce.py custom_allreduce_aiconfigurator.csv.gz --platform h100_sxm \\
        --machine configs/machines/dgx-h100.yaml

An all-reduce of S bytes on p GPUs of the machine's innermost dimension (bandwidth B) takes the
fastest of the two kernels and of the library (NCCL) as the machine file has it:

    one_shot  launch + (p-1) step_latency  + (p-1) S / (efficiency B)
    two_shot  launch + 2(p-1) step_latency + 2(p-1)/p S / (efficiency B)

Each of vLLM's kernels in CUDA graphs ("graph") and TensorRT-LLM's ("trtllm") has its own three
coefficients per kernel; two_shot has one barrier more, so its launch is not below that of one_shot.
Launched by the host ("eager") vLLM's take besides two passes over the buffer in device memory
(published bandwidth M, not fitted) and no less than the host needs to issue one:

    max(at_least, extra + kernel + 2 S / M)

at_least and extra are fitted. A kernel that is nowhere the fastest is left out. The table's sizes
are the even powers of two; the held-out errors are those of fits that did not see the size they
predict.
"""
import argparse
import collections
import csv
import gzip

import numpy as np
import yaml
from scipy.optimize import least_squares

MICRO = 1e-6
STARTS = 6
START = (4.0, 0.1, 0.6, 3.0, 0.2, 0.6)  # us, us, share; us above that of one_shot, us, share
START_EAGER = (30.0, 4.0)  # us
LEAST_STEP = 0.01  # us: what is below has no effect
KERNELS = {"graph": "vLLM_custom_graph", "eager": "vLLM_custom_eager", "trtllm": "TRTLLM"}
LEAST_IN_SWITCH = 5  # ranks, as src/collective/price.cc
UNITS = {"ns": 1e-9, "us": 1e-6, "GB/s": 1e9, "Gbit/s": 1e9 / 8}


def value_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


class Library:
    """NCCL inside a node, by the machine file's protocols."""

    def __init__(self, machine):
        self.dimension = machine["network"][0]
        self.bandwidth = value_of(self.dimension["bandwidth"])

    def time(self, ranks, size):
        def of(protocol, steps, load, copies):
            latency = value_of(protocol.get("launch", "0 us"))
            latency += steps * value_of(protocol["step_latency"])
            moved = load * size + copies * size / ranks
            return latency + moved / (protocol["efficiency"] * self.bandwidth)

        n = 2 * (ranks - 1)
        times = [of(p, n, n / ranks, p.get("local_copy", 0)) for p in self.dimension["protocols"]]
        if ranks >= LEAST_IN_SWITCH:
            times += [of(p, 2, 1 + 1 / ranks, 0) for p in self.dimension.get("in_switch", [])]
        return min(times)


def kernel_times(values, key, bandwidth):
    launch, step, share, more, step_two, share_two = values
    ranks, size = key
    one = (launch + (ranks - 1) * step) * MICRO + (ranks - 1) * size / (share * bandwidth)
    two = (launch + more + 2 * (ranks - 1) * step_two) * MICRO
    return one, two + 2 * (ranks - 1) / ranks * size / (share_two * bandwidth)


def read_measurements(options):
    """{launch: {(ranks, bytes): [seconds of versions and repeats]}}"""
    names = {kernel: launch for launch, kernel in KERNELS.items()}
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    with (gzip.open if options.file.endswith(".gz") else open)(options.file, "rt") as stream:
        for row in csv.DictReader(stream):
            if row["platform"] == options.platform and row["kernel"] in names:
                key = int(row["n_gpus"]), int(row["bytes"])
                found[names[row["kernel"]]][key].append(float(row["latency_us"]) * MICRO)
    if not found:
        raise SystemExit(f"no rows of platform {options.platform!r} in {options.file}")
    return found


def fit(measured, start, predict):
    """Values (above 0) whose predictions have the least soft-L1 norm of log ratios; those that do
    not matter stay near where they start. Deterministic."""
    def residuals(vector):
        ratios = [np.log(predict(np.exp(vector), key) / np.median(times))
                  for key, times in sorted(measured.items())]
        return np.array(ratios + list(0.003 * (vector - np.log(start))))

    best = None
    for seed in range(STARTS):
        spread = np.random.default_rng(seed).normal(0, 0.3 if seed else 0.0, len(start))
        result = least_squares(residuals, np.log(start) + spread, loss="soft_l1", f_scale=0.1)
        if best is None or result.cost < best.cost:
            best = result
    return np.exp(best.x)


def fit_and_report(launch, measured, start, predict):
    found = fit(measured, start, predict)
    unseen = []
    for size in sorted({size for _, size in measured}):
        other = fit({key: t for key, t in measured.items() if key[1] != size}, found, predict)
        unseen += [(key, predict(other, key) / t - 1)
                   for key, times in measured.items() if key[1] == size for t in times]
    seen = [(key, predict(found, key) / t - 1) for key, times in measured.items() for t in times]
    for label, errors in (("fit", seen), ("held out", unseen)):
        sizes = np.array([key[1] for key, _ in errors])
        values = 100 * np.abs([error for _, error in errors])
        print(f"# {launch:6} {label:8}  n {len(values):3}  median {np.median(values):4.1f} %  below "
              f"1 MiB {np.median(values[sizes < 1 << 20]):4.1f} %  mean {values.mean():4.1f} %")
    return found


def protocol(name, launch, step, share, more=""):
    step = step if step >= LEAST_STEP else 0
    return (f"      - {{name: {name}, launch: {launch:.3g} us, step_latency: {step:.2g} us, "
            f"efficiency: {share:.3g}{more}}}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="CSV (.gz): platform, kernel, n_gpus, bytes, latency_us")
    parser.add_argument("--platform", required=True)
    parser.add_argument("--machine", required=True, help="YAML with the library's protocols")
    options = parser.parse_args()
    with open(options.machine, encoding="utf-8") as stream:
        machine = yaml.safe_load(stream)
    library = Library(machine)
    memory = value_of(machine["device"]["memory"][0]["bandwidth"])
    measured = read_measurements(options)

    def graph_time(values, key):
        return min(*kernel_times(values, key, library.bandwidth), library.time(*key))

    def eager_time(values, key):
        least, extra = values
        passes = 2 * key[1] / memory
        kernels = min(kernel_times(kept["graph"], key, library.bandwidth))
        done = min(extra * MICRO + kernels, library.time(*key))
        return max(least * MICRO, done + passes)

    kept = {}
    lists = {"one_shot": [], "two_shot": []}
    for launch in ("graph", "trtllm"):
        values = kept[launch] = fit_and_report(launch, measured[launch], START, graph_time)
        times = [(*kernel_times(values, key, library.bandwidth), library.time(*key))
                 for key in measured[launch]]
        more = [(launch, "")]
        if launch == "graph":
            least, extra = fit_and_report("eager", measured["eager"], START_EAGER, eager_time)
            more.append(("eager", f", buffer_copy: 2, at_least: {least:.3g} us"))
        for name, suffix in more:
            above = extra if name == "eager" else 0
            for index, (kernel, first) in enumerate((("one_shot", 0), ("two_shot", 3))):
                if any(min(each) == each[index] for each in times):
                    start = values[0] + (values[3] if index else 0) + above
                    lists[kernel].append(protocol(name, start, *values[first + 1:first + 3], suffix))
    for kernel, lines in lists.items():
        print("\n".join([f"    {kernel}:"] + lines))


if __name__ == "__main__":
    main()
