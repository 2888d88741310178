# SPDX-License-Identifier: Apache-2.0
"""The commands that pages show, run as a reader would: blocks of sh, and indented lines that begin with `orrery`.

A command runs in a folder that has configs/, examples/, docs/ and build/release/orrery. Where it names files that the
reader brings it may fail, but for nothing else than these. A block is left out by a comment above it:

    <!-- not run: why -->       needs what a test has not (an accelerator, a server, hours)
    <!-- slow -->               takes a second or more, runs in the slow test only
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"(?:<!-- (?P<mark>slow|not run: [^>]*?) -->\s*\n)?^```sh\n(?P<text>.*?)^```", re.M | re.S)
INDENTED = re.compile(r"(?:<!-- (?P<mark>slow|not run: [^>]*?) -->\s*\n\s*)?(?P<text>(?:^ {4}.*\n)+)", re.M)
# What is a form and no command: a reader fills it in.
FORM = re.compile(r"\.\.\.|\bPREFIX\b|\[-|\[FILE|\$\(|^for ")
# Commands that wait for somebody.
SERVES = re.compile(r"--listen|--observe|^orrery (ui|mcp)\b")
FILE = re.compile(r"[\w./-]+\.(?:yaml|yml|json|jsonl|csv|toml|sh|txt|c|db|svg|html|et)\b|nets/|traces?/|mesh88_lat")


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def commands_of(page: pathlib.Path) -> list[tuple[str, str]]:
    """(mark, command) of every command on a page, lines that go on joined."""
    found = []
    text = page.read_text()
    blocks = [(match["mark"] or "", match["text"]) for match in FENCE.finditer(text)]
    plain = re.sub(r"^```.*?^```", "", FENCE.sub("", text), flags=re.M | re.S)
    blocks += [(match["mark"] or "", match["text"]) for match in INDENTED.finditer(plain)]
    for mark, block in blocks:
        joined = re.sub(r"\n {8,}(?=--|-\w)", " ", re.sub(r"\\\n\s*", "", block))
        joined = re.sub(r"\|\n\s*|\n\s+(?=WHERE)", lambda end: "| " if "|" in end[0] else " ", joined)
        for line in joined.splitlines():
            line = re.sub(r"\s+#.*$", "", line).strip().removeprefix("$ ")
            line = line.replace("build/release/orrery ", "orrery ")
            if line.startswith("orrery ") and not FORM.search(line) and not SERVES.search(line):
                found.append((mark, line))
    return found


class Folder:
    """A scratch folder that looks like the top of a checkout, with `orrery` on PATH."""

    def __init__(self, binary: str):
        self.made = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.made.name)
        for name in ("configs", "examples", "docs"):
            (self.path / name).symlink_to(ROOT / name)
        (self.path / "bin").mkdir()
        (self.path / "bin/orrery").symlink_to(binary)
        self.environment = dict(os.environ, PATH=f"{self.path / 'bin'}:{os.environ['PATH']}",
                                ORRERY_CONFIGS=str(ROOT / "configs"))

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_) -> None:
        self.made.cleanup()

    def mistake(self, command: str, seconds: float) -> str:
        """What is wrong with a command, "" where nothing is."""
        missing = [word for word in FILE.findall(command) if not (self.path / word).exists()]
        try:
            run = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=self.path, env=self.environment,
                                 capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"{command}: still running after {seconds} s"
        if run.returncode == 0:
            return ""
        lines = [line for line in run.stderr.splitlines() if not line.startswith("note:")]
        unknown = [line for line in lines if re.search("unknown (option|command)|unexpected argument|contradicts", line)]
        mere = missing and all(any(pathlib.Path(name).name in line or name in line for name in missing) for line in lines)
        return "" if mere and not unknown else f"{command}: {run.returncode}: {run.stderr[:600]}"


def run_all(test: unittest.TestCase, marks: tuple[str, ...], seconds: float) -> int:
    """Runs the commands of all pages that have one of the marks, each page's in a folder, since they follow each other;
    each that is wrong fails the test. Returns how many there were."""
    count = 0
    for page in pages():
        commands = [command for mark, command in commands_of(page) if mark in marks]
        if not commands:
            continue
        with Folder(os.environ["ORRERY_BINARY"]) as folder:
            for command in commands:
                with test.subTest(page=str(page.relative_to(ROOT)), command=command):
                    test.assertEqual(folder.mistake(command, seconds), "")
                count += 1
    return count
