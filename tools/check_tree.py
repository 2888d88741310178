#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a compiler does not see, and fails when there is any: a source without its licence line,
a source of more than 400 lines, a folder of src/ without a README.md.

    tools/check_tree.py [REPOSITORY]
"""
import pathlib
import sys

SUFFIXES = {".h", ".cc", ".py", ".sh", ".cmake"}
FOLDERS = ("src", "tests", "bench", "cmake", "tools")
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LINES = 400


def sources_of(root: pathlib.Path) -> list[pathlib.Path]:
    files = [p for p in sorted(root.iterdir()) if p.is_file()]
    for folder in FOLDERS:
        files += sorted(p for p in (root / folder).rglob("*") if p.is_file())
    return [p for p in files if p.suffix in SUFFIXES or p.name == "CMakeLists.txt"]


def mistakes_in(source: pathlib.Path):
    lines = source.read_text().splitlines()
    if not any(LICENCE in line for line in lines[:2]):
        yield f"{source}:1: expected '{LICENCE}'"
    if len(lines) > LINES:
        yield f"{source}:{LINES + 1}: found {len(lines)} lines, expected at most {LINES}"


def missing_readmes(root: pathlib.Path):
    folders = {p.parent for p in (root / "src").rglob("*.h")} - {root / "src"}
    for folder in sorted(folders):
        if not (folder / "README.md").exists():
            yield f"{folder}: expected a README.md: what goes in, what comes out, which file first"


def main(root: pathlib.Path) -> int:
    sources = sources_of(root)
    mistakes = [m for source in sources for m in mistakes_in(source)] + list(missing_readmes(root))
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    return int(bool(mistakes) or not sources)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
