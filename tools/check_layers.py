#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every #include and every CMake link that points up or sideways, and fails when there is one.

    tools/check_layers.py [REPOSITORY]

The layers are the table of docs/architecture.md, so the page and the rule cannot differ. A file or an
include that maps to no row of the table is a violation too, and so is a header of values (the list under
"Headers of values" on that page) that includes another header than these and those of src/base.
"""
import pathlib
import re
import sys

ROW = re.compile(r"\|\s*(\d+)\s*\|(?P<folders>[^|]+)\|")
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
MODULE_LINK = re.compile(r"^orrery_module\((\S+)(?:\s+COLD)?\s+DEPENDS([^)]*)\)", re.MULTILINE)
VALUES = re.compile(r"^Headers of values:(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
HEADERS = re.compile(r"`(?P<folder>[a-z_/]+)/\{(?P<names>[a-z_, \n]+)\}\.h`")


def read_layers(page: str) -> dict[str, int]:
    """Module ("machine/compute") -> layer (1 is the bottom), from the rows `| 3 | `src/...` | ...`."""
    return {
        module.strip("/"): int(row[1])
        for row in map(ROW.match, page.splitlines()) if row
        for module in re.findall(r"`src/([a-z_/]+)`", row["folders"])
    }


def module_of(path: str, layers: dict[str, int]) -> str | None:
    """The longest module that is the folder of `path` or above it. A module that has other modules
    in it ("machine") covers only the files at its own root."""
    folder = str(pathlib.PurePosixPath(path).parent)
    if folder in layers:
        return folder
    leaves = (m for m in layers if not any(other.startswith(m + "/") for other in layers))
    return max((m for m in leaves if folder.startswith(m + "/")), key=len, default=None)


def bad_includes(file: pathlib.Path, src: pathlib.Path, layers: dict[str, int]):
    own = module_of(file.relative_to(src).as_posix(), layers)
    if own is None:
        yield f"{file}: belongs to no row of the layer table"
        return
    for number, line in enumerate(file.read_text().splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        other = module_of(include[1], layers)
        if other is None:
            yield (f'{file}:{number}: "{include[1]}" belongs to no row of the layer table '
                   '(include from src/, as in "graph/operator.h")')
        elif other != own and layers[other] >= layers[own]:
            yield f'{file}:{number}: {own} must not include "{include[1]}"'


def bad_links(cmake: pathlib.Path, layers: dict[str, int]):
    """orrery_module(a DEPENDS b EXTERNAL x): b must be below a."""
    for module, rest in MODULE_LINK.findall(cmake.read_text()):
        for other in rest.split("EXTERNAL")[0].split():
            if layers.get(other, sys.maxsize) >= layers.get(module, 0):
                yield f"{cmake}: {module} must not link {other}"


def read_values(page: str) -> set[str]:
    """Headers of values ("machine/machine.h"), from the list `folder/{name, name}.h`, ... of the page."""
    values = VALUES.search(page)
    return {
        f"{headers['folder']}/{name.strip()}.h"
        for headers in HEADERS.finditer(values[1] if values else "")
        for name in headers["names"].split(",")
    }


def bad_values(src: pathlib.Path, values: set[str]):
    """A header of values that is not there, or includes what is none."""
    for header in sorted(values):
        if not (src / header).exists():
            yield f"{src / header}: listed as a header of values, but not there"
            continue
        for number, line in enumerate((src / header).read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if include and include[1] not in values and not include[1].startswith("base/"):
                yield f'{src / header}:{number}: a header of values must not include "{include[1]}"'


def main(root: pathlib.Path) -> int:
    page = (root / "docs/architecture.md").read_text()
    layers = read_layers(page)
    src = root / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in {".h", ".cc"})
    if not layers or not files:
        print(f"{root}: no layer table in docs/architecture.md or no source in src/")
        return 1
    violations = [v for file in files for v in bad_includes(file, src, layers)]
    violations += bad_values(src, read_values(page))
    if (src / "CMakeLists.txt").exists():
        violations += bad_links(src / "CMakeLists.txt", layers)
    print(*violations, sep="\n", end="\n" if violations else "")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
