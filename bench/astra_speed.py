#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `orrery astra` on the inputs on which ASTRA-sim's own speed was measured and prints both: CPU
time of the whole process, opening of one trace file per rank included.

    bench/astra_speed.py [--binary build/release/orrery] [--runs 3] [--only ring,transformer] [--json]

A row is met when the unfolded run is 20 times faster than ASTRA-sim where that needs 2.5 s or more, 8
times from 0.5 s, and else takes at most 30 ms; and the folded run 1,000 times faster where ASTRA-sim
needs 15 s or more, else at most 15 ms.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from measure import measure

MIB = 1 << 20
GIB = 1 << 30
COMP, COLLECTIVE, ALL_REDUCE = 4, 7, 0


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: bytes) -> bytes:
    return block(10, block(1, name.encode()) + value)


def node(number_of: int, name: str, kind: int, rest: bytes, dependencies=()) -> bytes:
    """Chakra's Node: id 1, name 2, type 3, data_deps 5, duration_micros 7, attr 10."""
    content = (number(1, number_of) + block(2, name.encode()) + number(3, kind) +
               block(5, b"".join(map(varint, dependencies))) + rest +
               attribute("is_cpu_op", number(27, 0)))
    return varint(len(content)) + content


def compute(number_of: int, name: str, micros: int, dependencies) -> bytes:
    return node(number_of, name, COMP, number(7, micros), dependencies)


def all_reduce(number_of: int, name: str, size: int, dependencies=(), involved=()) -> bytes:
    rest = attribute("comm_type", number(9, ALL_REDUCE)) + attribute("comm_size", number(9, size))
    if involved:
        rest += attribute("involved_dim", block(28, block(1, bytes(involved))))
    return node(number_of, name, COLLECTIVE, rest, dependencies)


def trace(nodes) -> bytes:
    metadata = block(1, b"0.0.4")
    return varint(len(metadata)) + metadata + b"".join(nodes)


def transformer(layers: int) -> bytes:
    """Per layer forward and backward kernels, a tensor-parallel all-reduce of 8 MiB after each, and a
    data-parallel one of 32 MiB that overlaps the rest of backward."""
    tensor, data = (1, 0), (0, 1)
    nodes, last = [], ()
    for layer in range(layers):
        at = len(nodes)
        nodes.append(compute(at, f"fwd{layer}", 100, last))
        nodes.append(all_reduce(at + 1, f"fwd{layer}_tp", 8 * MIB, (at,), tensor))
        last = (at + 1,)
    for layer in reversed(range(layers)):
        at = len(nodes)
        nodes.append(compute(at, f"bwd{layer}", 200, last))
        nodes.append(all_reduce(at + 1, f"bwd{layer}_tp", 8 * MIB, (at,), tensor))
        nodes.append(all_reduce(at + 2, f"bwd{layer}_dp", 32 * MIB, (at,), data))
        last = (at + 1,)
    return trace(nodes)


def one_dimension(building: str, algorithm: str):
    return lambda npus: ([building], [npus], [50.0], [algorithm], 1, trace([all_reduce(0, "n0", 64 * MIB)]))


WORKLOADS = {
    "ring": one_dimension("Ring", "ring"),
    "halving": one_dimension("Switch", "halvingDoubling"),
    "direct": one_dimension("FullyConnected", "direct"),
    "three_dimensions": lambda npus: (["Ring", "FullyConnected", "Switch"], [8, 8, npus // 64],
                                      [200.0, 100.0, 50.0], ["ring", "direct", "halvingDoubling"], 64,
                                      trace([all_reduce(0, "n0", GIB)])),
    "transformer": lambda npus: (["FullyConnected", "Switch"], [8, npus // 8], [200.0, 50.0],
                                 ["direct", "halvingDoubling"], 4, transformer(24)),
}


def write_inputs(folder: pathlib.Path, workload: str, npus: int) -> None:
    buildings, sizes, bandwidths, algorithms, splits, content = WORKLOADS[workload](npus)
    lists = {"topology": buildings, "npus_count": sizes, "bandwidth": bandwidths,
             "latency": [500.0] * len(sizes)}
    (folder / "network.yml").write_text(
        "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in lists.items()))
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    (folder / "system.json").write_text(json.dumps({
        "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": splits, "collective-optimization": "localBWAware",
        "local-mem-bw": 1600, **{f"{kind}-implementation": algorithms for kind in kinds}}))
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    for rank in range(npus):
        (folder / f"trace.{rank}.et").write_bytes(content)


def fastest(command, runs: int) -> tuple[float, float, int]:
    """CPU seconds, MB at the peak, and the cycles that all ranks report."""
    seconds, peak, printed = min(measure(command) for _ in range(runs))
    return seconds, peak, max(rank["cycles"] for rank in json.loads(printed)["ranks"])


def run(binary: str, workload: str, npus: int, backend: str, runs: int) -> dict:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder, workload, npus)
        command = [binary, "astra", "--json", f"--network-backend={backend}",
                   f"--workload-configuration={folder}/trace",
                   f"--system-configuration={folder}/system.json",
                   f"--network-configuration={folder}/network.yml",
                   f"--remote-memory-configuration={folder}/memory.json"]
        unfolded = fastest([*command, "--no-fold"], runs)
        folded = fastest(command, runs)
        if unfolded[2] != folded[2]:
            sys.exit(f"{workload} {npus}: folded {folded[2]}, unfolded {unfolded[2]} cycles")
        return {"unfolded_s": unfolded[0], "unfolded_MB": unfolded[1], "folded_s": folded[0],
                "folded_MB": folded[1], "cycles": folded[2]}


def met(row: dict) -> bool:
    astra = row["astra_s"]
    unfolded = astra / (20 if astra >= 2.5 else 8) if astra >= 0.5 else 0.030
    folded = astra / 1000 if astra >= 15 else 0.015
    return row["unfolded_s"] <= unfolded and row["folded_s"] <= folded


def rows_of(file: pathlib.Path):
    for line in file.read_text().splitlines():
        if not line.startswith("#"):
            workload, npus, backend, cpu, peak, messages = line.split("\t")
            yield workload, int(npus), backend, float(cpu), peak, int(messages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/orrery")
    parser.add_argument("--runs", type=int, default=3, help="the fastest counts")
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, with commas between")
    parser.add_argument("--most", type=int, default=4096, help="largest number of NPUs")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    if not arguments.json:
        print(f"{'workload':<18}{'npus':>6} {'backend':<8}{'messages':>10}{'ASTRA-sim':>11}{'unfolded':>10}"
              f"{'ratio':>8}{'folded':>10}{'ratio':>9}{'MB':>6}  met")
    for workload, npus, backend, cpu, _, messages in rows_of(pathlib.Path(__file__).with_suffix(".tsv")):
        if workload not in arguments.only.split(",") or npus > arguments.most:
            continue
        row = {"workload": workload, "npus": npus, "backend": backend, "messages": messages, "astra_s": cpu,
               **run(arguments.binary, workload, npus, backend, arguments.runs)}
        row["met"] = met(row)
        results.append(row)
        if not arguments.json:
            print(f"{workload:<18}{npus:>6} {backend:<8}{messages:>10}{cpu:>9.2f} s"
                  f"{row['unfolded_s'] * 1e3:>7.0f} ms{cpu / row['unfolded_s']:>8.0f}"
                  f"{row['folded_s'] * 1e3:>7.0f} ms{cpu / row['folded_s']:>9.0f}"
                  f"{row['unfolded_MB']:>6.0f}  {'yes' if row['met'] else 'NO'}", flush=True)
    if arguments.json:
        print(json.dumps(results, indent=1))
    return 0 if all(row["met"] for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
