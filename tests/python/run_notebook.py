#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code cells of a notebook in order, in one namespace.

    tests/python/run_notebook.py FILE
"""
import json
import pathlib
import sys


def run(path: pathlib.Path) -> dict:
    names: dict = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    return names


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[1]))
