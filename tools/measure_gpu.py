#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU with PyTorch and writes CSV files for `orrery calibrate`.

    tools/measure_gpu.py gemm attention copy launch --out measured
    tools/measure_gpu.py clocks --seconds 120 --out measured
    orrery calibrate gemm measured/gemm.csv --machine dgx-h100 --output my-h100.yaml

Times come from CUDA events around a run of launches, after a warm-up; the median of several runs is
written. Operands rotate through more memory than the caches hold, so that every launch reads them from
device memory. Files, one per kind, each row with device, framework and version:

    gemm.csv       dtype, m, n, k, latency_us         C[m,n] = A[m,k] B[k,n], both operands in dtype
    attention.csv  dtype, pass, batch, heads, sequence, head_dim, causal, latency_us
    copy.csv       direction, bytes, latency_us       host_to_device, device_to_host (pinned), device
    launch.csv     kernel, latency_us                 host_dispatch: time between launches without waiting;
                                                      empty: start to end of a kernel of one element
    clocks.csv     dtype, m, n, k, state, loop_s, latency_us
                                                      one large GEMM of normally distributed numbers. cold: bursts
                                                      of milliseconds, a pause before each; sustained: the last
                                                      quarter of a loop of --seconds, when the power limit has
                                                      settled. cold over sustained latency is what
                                                      device.sustained_clock is meant to be
"""
import argparse
import csv
import math
import pathlib
import statistics
import sys
import time

CACHE_BYTES = 256 << 20  # more than the last-level cache of any accelerator so far
MOST_OPERAND_SETS = 64
LEAST_RUN_US = 2000  # a run of launches lasts at least this long
MOST_LAUNCHES = 200
RUNS = 7

GEMM_EXTENTS = {
    "m": (16, 64, 128, 512, 1024, 2048, 4096, 8192, 16384),
    "n": (128, 1024, 2048, 4096, 8192, 16384),
    "k": (128, 512, 1024, 4096, 8192, 16384),
}
LARGEST_GEMM_ELEMENTS = 1 << 29  # of all three matrices together
ATTENTION = tuple((batch, 16, sequence, head_dim)
                  for head_dim in (64, 128) for batch, sequence in ((8, 1024), (4, 2048), (2, 4096), (1, 8192)))
COPY_BYTES = tuple(1 << shift for shift in range(12, 31, 2))
CLOCK_EXTENT = 8192  # m = n = k: matrix units are busy nearly all the time
BURST_US = 20_000  # shorter than a power limit takes to act
PAUSE_S = 2.0
STRETCH_US = 500_000  # of the loop, between two readings
DIRECTIONS = ("host_to_device", "device_to_host", "device")

COLUMNS = {
    "gemm": ("dtype", "m", "n", "k", "latency_us"),
    "attention": ("dtype", "pass", "batch", "heads", "sequence", "head_dim", "causal", "latency_us"),
    "copy": ("direction", "bytes", "latency_us"),
    "launch": ("kernel", "latency_us"),
    "clocks": ("dtype", "m", "n", "k", "state", "loop_s", "latency_us"),
}
TYPES = ("bf16", "fp16", "fp8")


class NotPossible(Exception):
    """This machine cannot measure what was asked for; the text says what is missing."""


class TorchBackend:
    """What the measurements need of PyTorch; tests put a fake in its place."""

    framework = "pytorch"

    def __init__(self):
        try:
            import torch
        except ImportError as error:
            raise NotPossible("PyTorch is not installed: pip install torch") from error
        if not torch.cuda.is_available():
            raise NotPossible("PyTorch finds no GPU (torch.cuda.is_available() is false)")
        self.torch = torch
        self.version = torch.__version__
        self.device = torch.cuda.get_device_name()
        self.dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16}
        if hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
            self.dtypes["fp8"] = torch.float8_e4m3fn

    def types(self):
        return tuple(self.dtypes)

    def elapsed_us(self, launches, calls):
        """Device time of `calls` launches, cycling through the list."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in range(calls):
            launches[call % len(launches)]()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000

    def host_us(self, launch, calls):
        """Host time to issue `calls` launches, without waiting for them."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            launch()
        issued = time.perf_counter() - begin
        self.torch.cuda.synchronize()
        return issued * 1e6

    def rest(self, seconds):
        """Nothing runs for so long."""
        self.torch.cuda.synchronize()
        time.sleep(seconds)

    def gemm(self, dtype, m, n, k):
        torch = self.torch
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16).to(self.dtypes[dtype])
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16).to(self.dtypes[dtype]).t()
        if dtype != "fp8":
            out = torch.empty(m, n, device="cuda", dtype=self.dtypes[dtype])
            return lambda: torch.mm(a, b, out=out)
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    def attention(self, dtype, batch, heads, sequence, head_dim, backward):
        torch = self.torch
        shape = (batch, heads, sequence, head_dim)
        q, k, v = (torch.randn(shape, device="cuda", dtype=self.dtypes[dtype], requires_grad=backward)
                   for _ in range(3))
        attend = torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(q, k, v, is_causal=True)
        out = attend(q, k, v, is_causal=True)
        gradient = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    def copy(self, direction, size):
        torch = self.torch
        on_device = torch.empty(size, dtype=torch.uint8, device="cuda")
        other = (torch.empty_like(on_device) if direction == "device" else
                 torch.empty(size, dtype=torch.uint8, pin_memory=True))
        if direction == "host_to_device":
            return lambda: on_device.copy_(other, non_blocking=True)
        return lambda: other.copy_(on_device, non_blocking=True)

    def empty(self):
        one = self.torch.zeros(1, device="cuda")
        return lambda: one.add_(1)


def time_us(backend, launches):
    """Median over RUNS of the device time of one launch."""
    one = backend.elapsed_us(launches, len(launches)) / len(launches)  # warms up
    calls = max(len(launches), min(MOST_LAUNCHES, math.ceil(LEAST_RUN_US / max(one, 1e-3))))
    return statistics.median(backend.elapsed_us(launches, calls) / calls for _ in range(RUNS))


def gemm_shapes():
    for m in GEMM_EXTENTS["m"]:
        for n in GEMM_EXTENTS["n"]:
            for k in GEMM_EXTENTS["k"]:
                if m * n + m * k + n * k <= LARGEST_GEMM_ELEMENTS:
                    yield m, n, k


def measure_gemm(backend, types, _seconds):
    for dtype in types:
        element = 1 if dtype == "fp8" else 2
        for m, n, k in gemm_shapes():
            sets = min(MOST_OPERAND_SETS, 1 + CACHE_BYTES // (element * (m * k + n * k + m * n)))
            launches = [backend.gemm(dtype, m, n, k) for _ in range(sets)]
            yield dtype, m, n, k, time_us(backend, launches)


def measure_attention(backend, types, _seconds):
    for dtype in (t for t in types if t != "fp8"):
        for batch, heads, sequence, head_dim in ATTENTION:
            for name in ("forward", "backward"):
                launch = backend.attention(dtype, batch, heads, sequence, head_dim, name == "backward")
                yield dtype, name, batch, heads, sequence, head_dim, 1, time_us(backend, [launch])


def measure_copy(backend, _types, _seconds):
    for direction in DIRECTIONS:
        for size in COPY_BYTES:
            yield direction, size, time_us(backend, [backend.copy(direction, size)])


def measure_launch(backend, _types, _seconds):
    launch = backend.empty()
    yield "empty", statistics.median(backend.elapsed_us([launch], 1) for _ in range(100))
    yield "host_dispatch", statistics.median(backend.host_us(launch, 200) / 200 for _ in range(RUNS))


def cold_us(backend, launch):
    """Median over RUNS of one launch's time in a burst that begins after a pause."""
    calls = max(1, math.ceil(BURST_US / max(backend.elapsed_us([launch], 3) / 3, 1e-3)))  # warms up
    times = []
    for _ in range(RUNS):
        backend.rest(PAUSE_S)
        backend.elapsed_us([launch], 1)  # leaves the idle state
        times.append(backend.elapsed_us([launch], calls) / calls)
    return statistics.median(times)


def sustained_us(backend, launch, one_us, seconds):
    """Time of one launch in the last quarter of a loop without pauses."""
    calls = max(1, math.ceil(min(STRETCH_US, seconds * 1e6 / 8) / one_us))
    spent, last, launches = 0.0, 0.0, 0
    while spent < seconds * 1e6:
        took = backend.elapsed_us([launch], calls)
        if spent >= 0.75 * seconds * 1e6:
            last += took
            launches += calls
        spent += took
    return last / launches


def measure_clocks(backend, types, seconds):
    extents = (CLOCK_EXTENT,) * 3
    for dtype in types:
        launch = backend.gemm(dtype, *extents)
        cold = cold_us(backend, launch)
        yield dtype, *extents, "cold", f"{BURST_US / 1e6:g}", cold
        yield dtype, *extents, "sustained", f"{seconds:g}", sustained_us(backend, launch, cold, seconds)


MEASUREMENTS = {"gemm": measure_gemm, "attention": measure_attention, "copy": measure_copy,
                "launch": measure_launch, "clocks": measure_clocks}


def write_csv(path, kind, rows, backend):
    """All rows, or no file: a run that is stopped leaves nothing half written."""
    partial = path.with_suffix(".partial")
    try:
        with partial.open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(("device", "framework", "version") + COLUMNS[kind])
            for *fields, latency in rows:
                writer.writerow((backend.device, backend.framework, backend.version, *fields, f"{latency:.4f}"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=tuple(MEASUREMENTS), help="what to measure")
    parser.add_argument("--seconds", type=float, default=60, help="length of the loop of clocks; default: 60")
    parser.add_argument("--types", help=f"of {', '.join(TYPES)}, with commas; default: all that the GPU has")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."), help="folder of the CSV files")
    options = parser.parse_args(arguments)
    if not 1 <= options.seconds <= 3600:
        parser.error(f"--seconds: found {options.seconds:g}, expected 1 to 3600")
    if options.types is not None:
        options.types = options.types.split(",")
        if unknown := [name for name in options.types if name not in TYPES]:
            parser.error(f"--types: found {', '.join(map(repr, unknown))}, expected some of {', '.join(TYPES)}")
    return options


def main(arguments=None, make_backend=TorchBackend):
    options = parse_arguments(arguments)
    try:
        backend = make_backend()
        if missing := [name for name in options.types or () if name not in backend.types()]:
            raise NotPossible(f"{backend.device} or this PyTorch has no {', '.join(missing)}")
    except NotPossible as problem:
        print(f"measure_gpu.py: {problem}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        path = options.out / f"{kind}.csv"
        rows = MEASUREMENTS[kind](backend, options.types or backend.types(), options.seconds)
        write_csv(path, kind, rows, backend)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
