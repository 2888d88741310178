#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU with PyTorch and writes CSV files for `orrery calibrate`.

    tools/measure_gpu.py gemm attention grouped stream copy launch --out measured
    tools/measure_gpu.py attention --shapes my_shapes.csv --out measured
    tools/measure_gpu.py clocks --seconds 120 --out measured
    orrery calibrate gemm measured/gemm.csv --machine dgx-h100 --output my-h100.yaml

Kernels are timed by CUDA events around replays of a CUDA graph of many launches, so that what the host takes to
launch one (5 to 50 us) is not in the times; the median of several replays is written. Operands rotate through more
memory than the caches hold, so that launches read them from device memory. Files, one per kind, each row with device,
framework and version; --shapes measures the rows of a file with the columns before latency_us instead:

    gemm.csv       dtype, m, n, k, latency_us         C[m,n] = A[m,k] B[k,n], both operands in dtype, B transposed
    attention.csv  type, library, batch, heads, kv_heads, head_dim, queries, keys, causal, backward, cache, latency_us
                                                      scaled_dot_product_attention of a library: flash2
                                                      (FlashAttention-2) or cudnn; queries 1: decoding. cache is
                                                      false: what `orrery attention --file` would else add
    grouped.csv    dtype, experts, m, n, k, latency_us    grouped_mm: m rows of each expert
    stream.csv     kernel, rows, width, bytes, latency_us  add, rms_norm, layer_norm, softmax in bf16; adamw in fp32.
                                                      bytes: operands read and results written, each once
    copy.csv       direction, bytes, latency_us       host_to_device, device_to_host (pinned), device; launched singly
    launch.csv     kernel, latency_us                 host_dispatch: time between launches without waiting;
                                                      empty: start to end of a kernel of one element; graph: from
                                                      one to the next in a CUDA graph
    clocks.csv     dtype, m, n, k, state, loop_s, latency_us
                                                      one large GEMM of normally distributed numbers. cold: bursts
                                                      of milliseconds, a pause before each; sustained: the last
                                                      quarter of a loop of --seconds, when the power limit has
                                                      settled. With the power logged beside it the loop
                                                      gives power_model.gemm_power (docs/models/power.md)
"""
import argparse
import csv
import math
import pathlib
import statistics
import sys

from torch_backend import NotPossible, TorchBackend

CACHE_BYTES = 256 << 20  # more than the last-level cache of any accelerator so far
MOST_OPERAND_SETS = 256
LEAST_RUN_US = 2000  # a run of launches lasts at least this long
MOST_LAUNCHES = 1000
RUNS = 7

GEMM_EXTENTS = {
    "m": (16, 64, 128, 512, 1024, 2048, 4096, 8192, 16384),
    "n": (128, 1024, 2048, 4096, 8192, 16384),
    "k": (128, 512, 1024, 4096, 8192, 16384),
}
LARGEST_GEMM_ELEMENTS = 1 << 29  # of all three matrices together
PROMPTS = tuple((batch, 16, 16, head_dim, length, length)
                for head_dim in (64, 128) for batch, length in ((8, 1024), (4, 2048), (2, 4096), (1, 8192)))
DECODES = tuple((batch, 32, 8, 128, 1, keys) for batch in (1, 8, 32, 128) for keys in (512, 2048, 8192))
GROUPED = tuple((experts, rows, n, k) for experts in (8, 64) for rows in (16, 128, 1024)
                for n, k in ((4096, 7168), (7168, 2048)))
STREAMS = tuple((kernel, rows, width) for kernel in ("add", "rms_norm", "layer_norm", "softmax", "adamw")
                for rows in (512, 8192) for width in (1024, 4096, 16384))
COPY_BYTES = tuple(1 << shift for shift in range(12, 31, 2))
CLOCK_EXTENT = 8192  # m = n = k: matrix units are busy nearly all the time
BURST_US = 20_000  # shorter than a power limit takes to act
PAUSE_S = 2.0
STRETCH_US = 500_000  # of the loop, between two readings
DIRECTIONS = ("host_to_device", "device_to_host", "device")
STREAM_BYTES = {"add": 6, "rms_norm": 4, "layer_norm": 4, "softmax": 4, "adamw": 28}  # of an element

COLUMNS = {
    "gemm": ("dtype", "m", "n", "k", "latency_us"),
    "attention": ("type", "library", "batch", "heads", "kv_heads", "head_dim", "queries", "keys", "causal", "backward",
                  "cache", "latency_us"),
    "grouped": ("dtype", "experts", "m", "n", "k", "latency_us"),
    "stream": ("kernel", "rows", "width", "bytes", "latency_us"),
    "copy": ("direction", "bytes", "latency_us"),
    "launch": ("kernel", "latency_us"),
    "clocks": ("dtype", "m", "n", "k", "state", "loop_s", "latency_us"),
}
TYPES = ("bf16", "fp16", "fp8")
LIBRARIES = ("flash2", "cudnn")
WORDS = {"dtype": TYPES, "type": TYPES, "library": LIBRARIES, "kernel": tuple(STREAM_BYTES),
         "causal": ("false", "true"), "backward": ("false", "true"), "cache": ("false",)}  # of columns
DERIVED = ("bytes",)  # of other columns


def run_length(backend, launches):
    """Launches that last LEAST_RUN_US; warms up."""
    backend.elapsed_us(launches, 1)  # loads kernels: not a launch's time
    one = backend.elapsed_us(launches, len(launches)) / len(launches)
    return max(len(launches), min(MOST_LAUNCHES, math.ceil(LEAST_RUN_US / max(one, 1e-3))))


def time_us(backend, launches):
    """Median over RUNS of the device time of one launch, launched singly."""
    calls = run_length(backend, launches)
    return statistics.median(backend.elapsed_us(launches, calls) / calls for _ in range(RUNS))


def graph_time_us(backend, launches):
    """Median over RUNS of the device time of one launch in a graph."""
    calls = run_length(backend, launches)
    return statistics.median(backend.replays_us(launches, calls, RUNS)) / calls


def operand_sets(size):
    return min(MOST_OPERAND_SETS, 1 + CACHE_BYTES // size)


def gemm_shapes():
    for m in GEMM_EXTENTS["m"]:
        for n in GEMM_EXTENTS["n"]:
            for k in GEMM_EXTENTS["k"]:
                if m * n + m * k + n * k <= LARGEST_GEMM_ELEMENTS:
                    yield m, n, k


def element(dtype):
    return 1 if dtype == "fp8" else 2


def gemm_rows(types):
    return [(dtype, *shape) for dtype in types for shape in gemm_shapes()]


def measure_gemm(backend, shapes):
    for dtype, m, n, k in shapes:
        sets = operand_sets(element(dtype) * (m * k + n * k + m * n))
        yield dtype, m, n, k, graph_time_us(backend, backend.gemm(dtype, m, n, k, sets))


def attention_rows(types):
    wide = [dtype for dtype in types if dtype != "fp8"]
    prompts = [(dtype, library, *shape, "true", backward, "false") for dtype in wide for library in LIBRARIES
               for shape in PROMPTS for backward in ("false", "true")]
    return prompts + [(dtype, "flash2", *shape, "false", "false", "false") for dtype in wide for shape in DECODES]


def measure_attention(backend, shapes):
    for *fields, causal, backward, cache in shapes:
        _, _, batch, heads, kv_heads, head_dim, queries, keys = fields
        sets = operand_sets(2 * 2 * batch * head_dim * (heads * queries + kv_heads * keys))
        launches = backend.attention(*fields, causal == "true", backward == "true", sets)
        yield *fields, causal, backward, cache, graph_time_us(backend, launches)


def measure_grouped(backend, shapes):
    for dtype, experts, m, n, k in shapes:
        sets = operand_sets(2 * experts * (m * k + n * k + m * n))
        yield dtype, experts, m, n, k, graph_time_us(backend, backend.grouped(dtype, experts, m, n, k, sets))


def measure_stream(backend, shapes):
    for kernel, rows, width, *_ in shapes:
        size = STREAM_BYTES[kernel] * rows * width
        launches = backend.stream_kernel(kernel, rows, width, operand_sets(size))
        yield kernel, rows, width, size, graph_time_us(backend, launches)


def measure_copy(backend, _options):
    for direction in DIRECTIONS:
        for size in COPY_BYTES:
            yield direction, size, time_us(backend, [backend.copy(direction, size)])


def measure_launch(backend, _options):
    launch = backend.empty()
    yield "empty", statistics.median(backend.elapsed_us([launch], 1) for _ in range(100))
    yield "host_dispatch", statistics.median(backend.host_us(launch, 200) / 200 for _ in range(RUNS))
    yield "graph", graph_time_us(backend, [launch])


def cold_us(backend, launch):
    """Median over RUNS of one launch's time in a burst that begins after a pause."""
    backend.elapsed_us([launch], 3)  # loads kernels: not a launch's time
    calls = max(1, math.ceil(BURST_US / max(backend.elapsed_us([launch], 3) / 3, 1e-3)))
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


def measure_clocks(backend, options):
    extents = (CLOCK_EXTENT,) * 3
    for dtype in options.types:
        launch = backend.gemm(dtype, *extents, 1)[0]
        cold = cold_us(backend, launch)
        yield dtype, *extents, "cold", f"{BURST_US / 1e6:g}", cold
        seconds = options.seconds
        yield dtype, *extents, "sustained", f"{seconds:g}", sustained_us(backend, launch, cold, seconds)


# Kinds whose rows are shapes: those of the sweep over types, and what measures them.
SHAPED = {"gemm": (gemm_rows, measure_gemm), "attention": (attention_rows, measure_attention),
          "grouped": (lambda types: [("bf16", *shape) for shape in GROUPED if "bf16" in types], measure_grouped),
          "stream": (lambda _types: STREAMS, measure_stream)}
OTHERS = {"copy": measure_copy, "launch": measure_launch, "clocks": measure_clocks}


def measured_rows(kind, backend, options):
    if kind in OTHERS:
        return OTHERS[kind](backend, options)
    sweep, measure = SHAPED[kind]
    return measure(backend, options.rows if options.shapes else sweep(options.types))


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


def read_shapes(path, kind, parser):
    """Rows of the kind's columns before latency_us; numbers are whole and not negative."""
    columns = [name for name in COLUMNS[kind][:-1] if name not in DERIVED]
    try:
        with path.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as problem:
        parser.error(f"--shapes: {problem}")
    if not rows or (missing := [name for name in columns if name not in rows[0]]):
        parser.error(f"{path}: expected rows with the columns {', '.join(columns)}"
                     + (f"; missing: {', '.join(missing)}" if rows else ""))
    for line, row in enumerate(rows, 2):
        for name in columns:
            if name in WORDS and row[name] not in WORDS[name]:
                parser.error(f"{path}:{line}: {name}: found '{row[name]}', expected one of {', '.join(WORDS[name])}")
            if name not in WORDS and not (row[name] or "").isdecimal():
                parser.error(f"{path}:{line}: {name}: found '{row[name]}', expected a whole number")
    return [tuple(row[name] if name in WORDS else int(row[name]) for name in columns) for row in rows]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=(*SHAPED, *OTHERS), help="what to measure")
    parser.add_argument("--shapes", type=pathlib.Path, help=f"CSV: the rows of one of {', '.join(SHAPED)} to measure")
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
    if options.shapes:
        if len(options.kinds) > 1 or options.kinds[0] not in SHAPED:
            parser.error(f"--shapes: found {' '.join(options.kinds)}, expected one of {', '.join(SHAPED)}")
        options.rows = read_shapes(options.shapes, options.kinds[0], parser)
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
    options.types = options.types or backend.types()
    options.out.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        path = options.out / f"{kind}.csv"
        write_csv(path, kind, measured_rows(kind, backend, options), backend)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
