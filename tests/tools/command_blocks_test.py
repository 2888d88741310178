# SPDX-License-Identifier: Apache-2.0
"""The commands that pages show run, but for those marked slow (a second or more), which tests/slow/command_blocks_test.py runs too."""
import os
import pathlib
import tempfile
import unittest

import command_blocks


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
class Pages(unittest.TestCase):
    def test_the_commands_of_pages_run(self):
        self.assertGreater(command_blocks.run_all(self, marks=("",), seconds=120), 70)

    def test_a_wrong_command_is_a_mistake_and_a_missing_file_is_none(self):
        with command_blocks.Folder(os.environ["ORRERY_BINARY"]) as folder:
            self.assertIn("unknown option --nodels", folder.mistake("orrery list models --nodels", 60))
            self.assertEqual(folder.mistake("orrery show machine mine.yaml", 60), "")
            self.assertIn("unknown", folder.mistake("orrery show machine mine.yaml --nodels", 60))


if __name__ == "__main__":
    unittest.main()
