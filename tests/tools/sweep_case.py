# SPDX-License-Identifier: Apache-2.0
"""What the tests of `orrery sweep` share."""
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

PATIENCE = 60  # seconds until something that should happen has not
# Points of some 10 ms each.
STUDY = """\
kind: simulate
model: gpt3-175b
machine: dgx-a100-80g
plan: gpt3-175b-1024
allow_oom: true
vary:
  plan.microbatch: [1, 2]
  machine.network.nvlink.bandwidth: {from: 100 GB/s, to: 400 GB/s, step: 40 GB/s}
  plan.tp_chunks: [1, 2]
"""
POINTS = 32


def rows_in(store: pathlib.Path) -> int:
    """Finished rows; 0 while the store is being made."""
    if not store.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=10) as connection:
            return connection.execute("SELECT count(*) FROM rows").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


class SweepCase(unittest.TestCase):
    """A study, its rows as an undisturbed sweep writes them, and a folder for each test."""

    @classmethod
    def setUpClass(cls):
        cls.binary = os.environ["ORRERY_BINARY"]
        cls.shared = tempfile.TemporaryDirectory()
        cls.study = pathlib.Path(cls.shared.name) / "study.yaml"
        cls.study.write_text(STUDY)
        cls.whole = pathlib.Path(cls.shared.name) / "whole.csv"
        subprocess.run([cls.binary, "sweep", cls.study, "--store", f"{cls.shared.name}/whole.db", "--csv",
                        cls.whole, "--threads", "2"], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.store = pathlib.Path(self.folder.name) / "s.db"
        self.csv = pathlib.Path(self.folder.name) / "s.csv"

    def sweep(self, *arguments, **how) -> str:
        return subprocess.run([self.binary, "sweep", *map(str, arguments)], check=True, text=True,
                              stdout=subprocess.PIPE, **how).stdout

    def start(self, *arguments, **how) -> subprocess.Popen:
        return subprocess.Popen([self.binary, "sweep", self.study, "--store", self.store, *arguments],
                                stdout=subprocess.DEVNULL, **how)

    def wait_for(self, store: pathlib.Path, rows: int, process: subprocess.Popen):
        end = time.monotonic() + PATIENCE
        while rows_in(store) < rows:
            self.assertIsNone(process.poll(), "ended before it could be killed")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def assert_whole(self):
        self.assertEqual(self.csv.read_bytes(), self.whole.read_bytes())
