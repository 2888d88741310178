#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ring all-reduces and all-to-alls on fat trees with SimGrid's flow model and with Orrery's, on the
same platform files, one after the other, and prints CPU time of the whole processes and without their starts (a run of
one flow, or of a ring of two hosts, on the same platform), the ratios of both, and by how much the results differ. Of --runs runs the fastest.
Needs simgrid_flows, which the build makes where libsimgrid-dev is installed.

    bench/simgrid_speed.py [--binary build/release/orrery] [--simgrid build/release/bench/simgrid/simgrid_flows]
                           [--hosts 64,128,256] [--ring-hosts 64,256,512,1024] [--bytes 1024] [--runs 3] [--json]

All-to-alls of more than 256 hosts take SimGrid minutes to hours. A row is met when Orrery takes a twentieth without the starts,
and the results are within 1 %.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from measure import measure

# Hosts below a switch of each level and switches above (SimGrid's FAT_TREE); full bisection.
TREES = {64: "2;8,8;1,8;1,1", 128: "3;8,4,4;1,8,4;1,1,1", 256: "2;16,16;1,16;1,1", 512: "3;8,8,8;1,8,8;1,1,1",
         1024: "2;32,32;1,32;1,1"}
MOST_DIFFERENCE = 0.01
LEAST_RATIO = 20
LEAST_SECONDS = 0.0005  # of work that the clock tells from none


def write_platform(folder: pathlib.Path, hosts: int) -> str:
    file = folder / f"fat_tree_{hosts}.xml"
    file.write_text(f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="world" routing="Full">
<cluster id="c" prefix="h-" radical="0-{hosts - 1}" suffix="" speed="1Gf" bw="12.5GBps" lat="0us"
 loopback_bw="100GBps" loopback_lat="0" topology="FAT_TREE" topo_parameters="{TREES[hosts]}"/>
</zone></platform>
""")
    return str(file)


def write_machine(folder: pathlib.Path, hosts: int, platform: str) -> str:
    file = folder / f"machine_{hosts}.yaml"
    file.write_text(f"""name: fat tree
device:
  name: host
  units: 1
  peak: {{bf16: 1 TFLOP/s}}
  memory:
    - {{name: memory, capacity: 16 GB, bandwidth: 1 TB/s}}
network:
  - {{name: tree, kind: switch, size: {hosts}, bandwidth: 12.5 GB/s, latency: 0 us}}
topology: {platform}
""")
    return str(file)


def fastest(runs: int, command) -> tuple[float, float, str]:
    return min(measure(command) for _ in range(runs))


def ring(arguments, machine: str, ranks: int) -> list[str]:
    size = str(arguments.bytes * ranks)  # of a ring's buffer: every message has --bytes
    return [arguments.binary, "collective", "all_reduce", "--machine", machine, "--devices", str(ranks), "--algorithm",
            "ring", "--network", "flow", "--min", size, "--max", size, "--json"]


def run(arguments, folder: pathlib.Path, pattern: str, hosts: int) -> dict:
    platform = write_platform(folder, hosts)
    one = folder / "one.csv"
    one.write_text("source,target,bytes,start_s\nh-0,h-1,1,0\n")
    if pattern == "ring":
        machine = write_machine(folder, hosts, platform)
        command = ring(arguments, machine, hosts)
        least = ring(arguments, machine, 2)
    else:
        command = [arguments.binary, "flow", "--topology", platform, "--traffic", "all_to_all", "--bytes",
                   f"{arguments.bytes} B"]
        least = [arguments.binary, "flow", "--topology", platform, "--flows", str(one)]
    size = arguments.bytes * hosts
    theirs = fastest(arguments.runs,
                     [arguments.simgrid, platform, pattern, str(size if pattern == "ring" else arguments.bytes)])
    ours = fastest(arguments.runs, command)  # of an all-to-all without the JSON of every flow
    their_start = fastest(arguments.runs, [arguments.simgrid, platform, "flows", str(one)])[0]
    our_start = fastest(arguments.runs, least)[0]
    printed = json.loads(ours[2] if pattern == "ring" else measure([*command, "--json"])[2])
    end = printed["rows"][0]["time_s"] if pattern == "ring" else printed["end_s"]
    expected = float(theirs[2])
    flows = 2 * (hosts - 1) * hosts if pattern == "ring" else hosts * (hosts - 1)
    ratio = theirs[0] / ours[0]
    their_work = theirs[0] - their_start
    our_work = max(LEAST_SECONDS, ours[0] - our_start)
    difference = end / expected - 1
    return {"pattern": pattern, "hosts": hosts, "flows": flows, "simgrid_s": theirs[0], "orrery_s": ours[0],
            "ratio": ratio, "simgrid_start_s": their_start, "orrery_start_s": our_start,
            "ratio_of_work": their_work / our_work, "orrery_MB": ours[1], "simgrid_MB": theirs[1],
            "difference": difference,
            "met": their_work >= LEAST_RATIO * our_work and abs(difference) <= MOST_DIFFERENCE}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/orrery")
    parser.add_argument("--simgrid", default="build/release/bench/simgrid/simgrid_flows")
    parser.add_argument("--hosts", default="64,128,256", help="of all-to-alls")
    parser.add_argument("--ring-hosts", default="64,256,512,1024")
    parser.add_argument("--bytes", type=int, default=1024, help="of every flow")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.simgrid).exists():
        print(f"skipped: no {arguments.simgrid} (install libsimgrid-dev and configure again)")
        return 0
    rows = []
    if not arguments.json:
        print(f"{'pattern':<12}{'hosts':>6}{'flows':>9}{'SimGrid':>10}{'Orrery':>10}{'ratio':>7}{'of work':>9}{'MB':>6}{'MB':>6}"
              f"{'results':>10}  met")
    with tempfile.TemporaryDirectory() as name:
        for pattern, sizes in (("ring", arguments.ring_hosts), ("all_to_all", arguments.hosts)):
            for hosts in map(int, filter(None, sizes.split(","))):
                row = run(arguments, pathlib.Path(name), pattern, hosts)
                rows.append(row)
                if not arguments.json:
                    print(f"{pattern:<12}{hosts:>6}{row['flows']:>9}{row['simgrid_s']:>8.2f} s"
                          f"{row['orrery_s'] * 1e3:>7.0f} ms{row['ratio']:>7.0f}{row['ratio_of_work']:>9.0f}{row['simgrid_MB']:>6.0f}"
                          f"{row['orrery_MB']:>6.0f}{row['difference']:>+10.1e}  {'yes' if row['met'] else 'NO'}",
                          flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
