# SPDX-License-Identifier: Apache-2.0
"""Every command that a page shows runs (tests/tools/command_blocks.py)."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import command_blocks  # noqa: E402


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Pages(unittest.TestCase):
    def test_every_command_of_every_page_runs(self):
        self.assertGreater(command_blocks.run_all(self, marks=("", "slow"), seconds=900), 90)


if __name__ == "__main__":
    unittest.main()
