#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-16 on the sources of a compilation database, in parallel; fails on any finding.

    tools/run_tidy.py BUILD_FOLDER [--all] [--quick] [--budget SECONDS]

Without --all only sources that changed since the branch left origin/main, with what they include; all
of them where there is no origin/main to compare with. --quick leaves out clang's path-sensitive analyzer.
Sources that the build compiles together (CMake's unity builds) are checked together: most of the time goes
into what they all include. A source that was clean is not checked again
until it, a header that it includes, its flags or .clang-tidy change. With a budget no new unit is
started after that many seconds, those of the newest commits come first, and the sources left over are
counted: --all checks them.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
TOOL = "clang-tidy-16"
# The database may hold g++'s own options.
KNOWN_TO_GCC = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]
# Sources are what a unit includes; findings in them count as findings in its main file do.
TOGETHER = ["-bugprone-suspicious-include"]
QUICK = ["-clang-analyzer-*"]
FILTER = r"--header-filter=(src/.*\.h|\.cc)$"
FINDING = re.compile(r"^(/[^:\n]+):\d+:\d+: (?:error|warning): .*\[(.*)\]$", re.MULTILINE)
# Another compiler's precompiled headers; without them a source shows what it does not include itself.
PRECOMPILED = re.compile(r"\s(-Xclang\s+)?-include(-pch)?\s+(-Xclang\s+)?\S*cmake_pch\S*|\s-Winvalid-pch\b")
AT_ONCE = 12
COMMITS = 200
UNITY = re.compile(r"^unity_\d+_cxx\.cxx$")


def configurations(source: pathlib.Path, root: pathlib.Path) -> list[pathlib.Path]:
    """The .clang-tidy files that hold for a source: the root's, and that of src, tests or bench if it has one."""
    folders = [root, root / source.relative_to(root).parts[0]]
    return [folder / ".clang-tidy" for folder in folders if (folder / ".clang-tidy").exists()]


def sources_of(entry: dict) -> list[pathlib.Path]:
    """The sources that an entry of the database compiles (together, in CMake's unity builds)."""
    unit = pathlib.Path(entry["file"])
    return [pathlib.Path(name) for name in INCLUDE.findall(unit.read_text())] if UNITY.match(unit.name) else [unit]


def closure(source: pathlib.Path, root: pathlib.Path) -> list[pathlib.Path]:
    """The source and the repository's headers that it includes, directly or not."""
    seen, todo = {source}, [source]
    while todo:
        for name in INCLUDE.findall(todo.pop().read_text()):
            header = root / "src" / name
            if header.exists() and header not in seen:
                seen.add(header)
                todo.append(header)
    return sorted(seen)


def fingerprint(files: list[pathlib.Path], command: str) -> str:
    digest = hashlib.sha256(command.encode())
    for path in [*files]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def git(root: pathlib.Path, *words: str) -> str | None:
    run = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def changed_files(root: pathlib.Path) -> set[pathlib.Path] | None:
    """Files that differ from where the branch left origin/main; None where that says nothing."""
    base = git(root, "merge-base", "HEAD", "origin/main")
    if not base or base == git(root, "rev-parse", "HEAD"):
        return None
    names = git(root, "diff", "--name-only", base) or ""
    return {root / name for name in names.splitlines()}


def places(root: pathlib.Path) -> dict[pathlib.Path, int]:
    """The files of the last commits, the newest first."""
    names = (git(root, "log", "-n", str(COMMITS), "--name-only", "--format=") or "").splitlines()
    return {root / name: place for place, name in reversed(list(enumerate(names)))}


class Unit:
    """Sources that are checked together, each with the stamp of its clean result."""

    def __init__(self, entry: dict, sources: dict[pathlib.Path, pathlib.Path], folder: pathlib.Path):
        """`folder`: where the unit is written, under the .clang-tidy of its sources."""
        self.sources = sources
        text = "".join(f'#include "{source}"\n' for source in sources)
        name = hashlib.sha256(f"{entry['command']} {text}".encode()).hexdigest()[:16] + ".cc"
        self.main = folder / name
        self.main.write_text(text)
        command = entry["command"].replace(entry["file"], str(self.main))
        self.entry = {**entry, "file": str(self.main), "command": command}

    def stamp(self, findings: str) -> None:
        """Marks as clean what no finding names; nothing where findings may hide others."""
        named = FINDING.findall(findings)
        files = {pathlib.Path(file) for file, _ in named}
        broken = any("clang-diagnostic" in check for _, check in named)
        if findings and (broken or not named or not files <= self.sources.keys()):
            return
        for source in self.sources.keys() - files:
            self.sources[source].touch()


class Tidy:
    def __init__(self, build: pathlib.Path, root: pathlib.Path, quick: bool = False, budget: float = 0):
        self.root = root
        self.flags = [*KNOWN_TO_GCC, FILTER, "--checks=" + ",".join(TOGETHER + (QUICK if quick else []))]
        self.deadline = time.monotonic() + budget if budget else float("inf")
        self.clean = build / "tidy"
        shutil.rmtree(self.clean / "units", ignore_errors=True)
        (self.clean / "units").mkdir(parents=True)
        self.entries = json.loads((build / "compile_commands.json").read_text())

    def units(self, everything: bool) -> list[Unit]:
        """What has to be checked."""
        changed = None if everything else changed_files(self.root)
        place = places(self.root)
        newest = lambda source: place.get(source, float("inf"))
        units = []
        for entry in self.entries:
            entry = {**entry, "command": PRECOMPILED.sub("", entry["command"])}
            stale = {}
            for source in sources_of(entry):
                if not source.is_relative_to(self.root) or source.is_relative_to(self.root / "build"):
                    continue
                files = configurations(source, self.root) + closure(source, self.root)
                flags = entry["command"].replace(entry["file"], str(source))
                stamp = self.clean / fingerprint(files, f"{flags} {self.flags}")
                if (changed is None or changed.intersection(files)) and not stamp.exists():
                    stale[source] = stamp
            rows = sorted(stale.items(), key=lambda row: newest(row[0]))
            units += [Unit(entry, dict(rows[i:i + AT_ONCE]), self.folder(rows[i][0]))
                      for i in range(0, len(rows), AT_ONCE)]
        (self.clean / "compile_commands.json").write_text(json.dumps([unit.entry for unit in units]))
        return sorted(units, key=lambda unit: min(map(newest, unit.sources)))

    def folder(self, source: pathlib.Path) -> pathlib.Path:
        """Where clang-tidy finds for a unit what it finds for the source."""
        folder = self.clean / "units"
        for path in configurations(source, self.root):
            folder = self.clean / "units" / path.parent.relative_to(self.root)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)
        return folder

    def check(self, unit: Unit) -> str | None:
        """The findings, "" when clean, None when the budget is spent."""
        if time.monotonic() > self.deadline:
            return None
        run = subprocess.run([TOOL, "-p", self.clean, "--quiet", *self.flags, unit.main],
                             capture_output=True, text=True)
        findings = "" if run.returncode == 0 else run.stdout + run.stderr
        unit.stamp(findings)
        return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every source, changed or not")
    parser.add_argument("--quick", action="store_true", help="without the path-sensitive analyzer")
    parser.add_argument("--budget", type=float, default=0, help="seconds; 0 = no limit")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    tidy = Tidy(options.build.resolve(), root, options.quick, options.budget)
    units = tidy.units(options.all)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = []
        for result in pool.map(tidy.check, units):
            results.append(result)
            if result:
                print(result, flush=True)  # an hour's findings are not kept for its end
    checked = sum(len(unit.sources) for unit, result in zip(units, results) if result is not None)
    left = sum(len(unit.sources) for unit, result in zip(units, results) if result is None)
    print(f"clang-tidy: {checked} sources checked, {sum(map(bool, results))} of {len(units)} units with findings, "
          f"{left} sources left for --all")
    return int(any(results))


if __name__ == "__main__":
    sys.exit(main())
