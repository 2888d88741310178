#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a compiler does not see, and fails when there is any: a source without its licence line,
a source of more than 400 lines, a folder of src/ without a README.md, a file of src/ in another folder's
namespace, two files of src/ that define a type or an inline function of one name; and what check_words.py finds in comments and pages.

    tools/check_tree.py [REPOSITORY]
"""
import pathlib
import re
import sys

import check_words

SUFFIXES = {".h", ".cc", ".py", ".sh", ".cmake"}
FOLDERS = ("src", "tests", "bench", "cmake", "tools")
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LINES = 400
# A folder's namespace is orrery::<its last name>, but for these.
NAMESPACES = {"base": "orrery", "workload/memory": "orrery::footprint"}
OPENED = re.compile(r"^(?:inline )?namespace (orrery\b[\w:]*) \{\n", re.MULTILINE)
FORWARD = re.compile(r"(?:\s*(?:struct|class|enum class)\s[^{};]*;)+\s*\}")  # declares another folder's types
# What clang-format leaves at the beginning of a line is in no class.
UNNAMED = re.compile(r"^namespace \{\n.*?^\}  // namespace\n", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(
    r"^namespace (?P<namespace>[\w:]+) \{$"
    r"|^(?P<type>(?:struct|class|union|enum class|enum) \w[^;{}()]*?)(?: final)?(?: :[^;{}()]*)? ?\{"
    r"|^using (?P<alias>\w+) ="
    r"|^(?P<function>(?:template <[^;{}]*>\s)?(?:inline|constexpr) [^;{}=]*\([^;{}]*\)[^;{}=]*?) \{", re.MULTILINE)


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


def other_namespaces(root: pathlib.Path):
    for source in sorted(p for p in (root / "src").rglob("*") if p.suffix in {".h", ".cc"}):
        folder = source.parent.relative_to(root / "src").as_posix()
        own = NAMESPACES.get(folder, f"orrery::{source.parent.name}")
        text = source.read_text()
        for opened in OPENED.finditer(text):
            within = opened[1] == own or own != "orrery" and opened[1].startswith(own + "::")
            if not within and not FORWARD.match(text, opened.end()):
                line = text.count("\n", 0, opened.start()) + 1
                yield f"{source}:{line}: found namespace {opened[1]}, expected {own}"


def definitions_in(text: str) -> set[str]:
    """Types and inline functions of a file that the whole program may name: "orrery::graph struct Node"."""
    namespace, found = "", set()
    for match in DEFINITION.finditer(UNNAMED.sub("", text)):
        if match["namespace"]:
            namespace = match["namespace"]
        else:
            name = match["type"] or match["alias"] or match["function"]
            found.add(" ".join(f"{namespace} {name}".split()))
    return found


def double_definitions(root: pathlib.Path):
    """Folders compile apart, and a linker merges two inline functions or types of one name in silence."""
    files = {}
    for source in sorted(p for p in (root / "src").rglob("*") if p.suffix in {".h", ".cc"}):
        for name in definitions_in(source.read_text()):
            if name in files:
                yield f"{source}: found '{name}', which {files[name]} defines too"
            files.setdefault(name, source)


def main(root: pathlib.Path) -> int:
    sources = sources_of(root)
    mistakes = [m for source in sources for m in mistakes_in(source)]
    mistakes += [*missing_readmes(root), *other_namespaces(root), *double_definitions(root), *check_words.mistakes(root)]
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    return int(bool(mistakes) or not sources)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
