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
        count = 0
        for page in command_blocks.pages():
            with command_blocks.Folder(os.environ["ORRERY_BINARY"]) as folder:  # a page's commands follow each other
                for mark, command in command_blocks.commands_of(page):
                    if not mark.startswith("not run"):
                        with self.subTest(page=str(page), command=command):
                            self.assertEqual(folder.mistake(command, 900), "")
                            count += 1
        self.assertGreater(count, 90)


if __name__ == "__main__":
    unittest.main()
