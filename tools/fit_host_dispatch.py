#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the host's time to issue one kernel to the fitted rows of a validation table.

    fit_host_dispatch.py [--orrery build/release/orrery] [--table vtrain_a100_single] [--step 2]

It is the only figure that is fitted to whole training steps: to the rows of the table's `fitted`
filter (no tensor and no pipeline parallelism), which do not count in its score. Prints the mean
absolute error of fitted and of scored rows for every value tried, and the value with the smallest
error of the fitted rows; the profile of vTrain's single-node table states that value.
"""
import argparse
import json
import statistics
import subprocess


def errors(options, microseconds):
    """(mean absolute error of fitted rows, of scored rows), in per cent."""
    command = [options.orrery, "validate", "--table", options.table, "--json",
               "--host-dispatch", f"{microseconds} us"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"]

    def mean(scored):
        return 100 * statistics.mean(abs(row["error"]) for row in rows if row["scored"] == scored)

    return mean(False), mean(True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default="build/release/orrery")
    parser.add_argument("--table", default="vtrain_a100_single")
    parser.add_argument("--lowest", type=int, default=20, help="us")
    parser.add_argument("--highest", type=int, default=70, help="us")
    parser.add_argument("--step", type=int, default=2, help="us")
    options = parser.parse_args()
    tried = {}
    for microseconds in range(options.lowest, options.highest + 1, options.step):
        tried[microseconds] = errors(options, microseconds)
        print("%3d us: fitted rows %5.2f %%, scored rows %5.2f %%" % (microseconds, *tried[microseconds]))
    best = min(tried, key=lambda microseconds: tried[microseconds][0])
    print(f"host_dispatch: {best} us  # fitted rows {tried[best][0]:.2f} %, scored rows {tried[best][1]:.2f} %")


if __name__ == "__main__":
    main()
