# SPDX-License-Identifier: Apache-2.0
"""A sample of the commands that pages show runs; the slow test (tests/slow/command_blocks_test.py) runs all."""
import os
import pathlib
import tempfile
import unittest

import command_blocks

SAMPLE = ["docs/trust.md", "docs/models/patches.md", "docs/models/home.md", "docs/models/frameworks.md"]


class Reader(unittest.TestCase):
    def test_lines_that_go_on_are_one_command_and_forms_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("```sh\norrery list models   # names\nbuild/release/orrery show \\\n    plan\n```\n"
                            "<!-- slow -->\n```sh\norrery plan --table a\n```\n"
                            "    orrery show model gpt2\n            --json\n    orrery x ...\n    orrery ui --port 1\n"
                            "```\norrery no shell\n```\n")
            self.assertEqual(command_blocks.commands_of(page),
                             [("", "orrery list models"), ("", "orrery show plan"), ("slow", "orrery plan --table a"),
                              ("", "orrery show model gpt2 --json")])


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Sample(unittest.TestCase):
    def setUp(self):
        self.folder = command_blocks.Folder(os.environ["ORRERY_BINARY"])
        self.addCleanup(self.folder.made.cleanup)

    def test_a_sample_of_the_commands_of_pages_runs(self):
        count = 0
        for name in SAMPLE:
            for mark, command in command_blocks.commands_of(command_blocks.ROOT / name):
                if not mark:
                    self.assertEqual(self.folder.mistake(command, 60), "", name)
                    count += 1
        self.assertGreater(count, 8)

    def test_a_wrong_command_is_a_mistake_and_a_missing_file_is_none(self):
        self.assertIn("unknown option --nodels", self.folder.mistake("orrery list models --nodels", 60))
        self.assertEqual(self.folder.mistake("orrery show machine mine.yaml", 60), "")
        self.assertIn("unknown", self.folder.mistake("orrery show machine mine.yaml --nodels", 60))


if __name__ == "__main__":
    unittest.main()
