#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every source file whose first lines do not name the licence, and fails when there is one.

    tools/check_spdx.py [REPOSITORY]
"""
import pathlib
import sys

SUFFIXES = {".h", ".cc", ".py", ".sh", ".cmake"}
NAMES = {"CMakeLists.txt"}
FOLDERS = ("src", "tests", "bench", "cmake", "tools")
LINE = "SPDX-License-Identifier: Apache-2.0"


def main(root: pathlib.Path) -> int:
    files = [p for p in sorted(root.iterdir()) if p.is_file()]
    for folder in FOLDERS:
        files += sorted(p for p in (root / folder).rglob("*") if p.is_file())
    sources = [p for p in files if p.suffix in SUFFIXES or p.name in NAMES]
    bad = [p for p in sources if not any(LINE in line for line in p.read_text().splitlines()[:2])]
    for path in bad:
        print(f"{path}:1: expected '{LINE}'")
    return int(bool(bad) or not sources)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
