#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-16 on the sources of a compilation database, in parallel; fails on any finding.

    tools/run_tidy.py BUILD_FOLDER [--all] [--quick] [--budget SECONDS]

Without --all only sources that changed since the branch left origin/main, with what they include; all
of them where there is no origin/main to compare with. --quick leaves out clang's path-sensitive analyzer,
which takes two thirds of the time. A source that was clean is not checked again
until it, a header that it includes, its flags or .clang-tidy change. With a budget no new source is
started after that many seconds, and the sources left over are named: --all checks them.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
TOOL = "clang-tidy-16"
# The database may hold g++'s own options.
KNOWN_TO_GCC = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]
QUICK = "--checks=-clang-analyzer-*"
# Another compiler's precompiled headers; without them a source shows what it does not include itself.
PRECOMPILED = re.compile(r"\s(-Xclang\s+)?-include(-pch)?\s+(-Xclang\s+)?\S*cmake_pch\S*|\s-Winvalid-pch\b")
UNITY = re.compile(r"^unity_\d+_cxx\.cxx$")


def apart(entry: dict) -> list[dict]:
    """The sources that an entry compiles together (CMake's unity builds), each as an entry of its own."""
    unit = pathlib.Path(entry["file"])
    if not UNITY.match(unit.name):
        return [entry]
    return [{**entry, "file": source, "command": entry["command"].replace(str(unit), source)}
            for source in INCLUDE.findall(unit.read_text())]


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


def fingerprint(files: list[pathlib.Path], command: str, root: pathlib.Path) -> str:
    digest = hashlib.sha256(command.encode())
    for path in [root / ".clang-tidy", *files]:
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


class Tidy:
    def __init__(self, build: pathlib.Path, root: pathlib.Path, quick: bool = False, budget: float = 0):
        self.build, self.root = build, root
        self.flags = KNOWN_TO_GCC + ([QUICK] if quick else [])
        self.deadline = time.monotonic() + budget if budget else float("inf")
        self.clean = build / "tidy"
        self.clean.mkdir(exist_ok=True)
        self.commands = []
        for entry in json.loads((build / "compile_commands.json").read_text()):
            entry["command"] = PRECOMPILED.sub("", entry["command"])
            self.commands += apart(entry)
        (self.clean / "compile_commands.json").write_text(json.dumps(self.commands))

    def sources(self, everything: bool) -> list[tuple[pathlib.Path, pathlib.Path]]:
        """(source, stamp of its clean result) for what has to be checked."""
        changed = None if everything else changed_files(self.root)
        found = []
        for entry in self.commands:
            source = pathlib.Path(entry["file"])
            if not source.is_relative_to(self.root) or source.is_relative_to(self.root / "build"):
                continue
            files = closure(source, self.root)
            stamp = self.clean / fingerprint(files, f"{entry['command']} {self.flags}", self.root)
            if (changed is None or changed.intersection(files)) and not stamp.exists():
                found.append((source, stamp))
        return found

    def check(self, source: pathlib.Path, stamp: pathlib.Path) -> str | None:
        """The findings, "" when clean, None when the budget is spent."""
        if time.monotonic() > self.deadline:
            return None
        run = subprocess.run([TOOL, "-p", self.clean, "--quiet", *self.flags, source],
                             capture_output=True, text=True)
        if run.returncode == 0:
            stamp.touch()
            return ""
        return run.stdout + run.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every source, changed or not")
    parser.add_argument("--quick", action="store_true", help="without the path-sensitive analyzer")
    parser.add_argument("--budget", type=float, default=0, help="seconds; 0 = no limit")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    tidy = Tidy(options.build.resolve(), root, options.quick, options.budget)
    jobs = tidy.sources(options.all)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: tidy.check(*job), jobs))
    for findings in filter(None, results):
        print(findings)
    left = [source.relative_to(root).as_posix() for (source, _), r in zip(jobs, results) if r is None]
    print(f"clang-tidy: {len(jobs) - len(left)} sources checked, {sum(map(bool, results))} with findings, "
          f"{len(left)} left for --all {' '.join(left)}".rstrip())
    return int(any(results))


if __name__ == "__main__":
    sys.exit(main())
