# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/make_manual.py: on a help text, and on the built command with an independent reading."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("make_manual", ROOT / "tools/make_manual.py")
make_manual = importlib.util.module_from_spec(_spec)
sys.modules["make_manual"] = make_manual  # dataclasses looks the module up by its name
_spec.loader.exec_module(make_manual)

HELP = """\
Simulate one step
Usage: orrery simulate [OPTIONS] SUBCOMMAND

Positionals:
  what TEXT:{machines,models} REQUIRED
                              what to list

Options:
  -h,--help                   Print this help message and exit
  -m,--machine TEXT REQUIRED  a machine
  --fold,--no-fold{false}     folding

Plan:
  --tp_algorithm,--tp-algorithm TEXT:{ring,direct}=ring
                              algorithm of tp; also --algorithm-of-tp, --tp-kind

Subcommands:
  machine                     Show a machine

Kinds:
  machines                    machine files

Examples:
  orrery simulate --fold
"""


class ParseHelp(unittest.TestCase):
    command = make_manual.parse_help(["orrery", "simulate"], HELP)

    def test_the_summary_stands_before_the_usage(self):
        self.assertEqual(self.command.summary, "Simulate one step")

    def test_every_name_of_every_option_group_is_an_option(self):
        self.assertEqual([entry.names for entry in self.command.options],
                         [["-h", "--help"], ["-m", "--machine"], ["--fold", "--no-fold"],
                          ["--tp_algorithm", "--tp-algorithm", "--algorithm-of-tp", "--tp-kind"]])

    def test_a_text_on_the_next_line_belongs_to_its_entry(self):
        self.assertEqual(self.command.options[3].text, "algorithm of tp")
        self.assertEqual(self.command.positionals[0].text, "what to list")

    def test_choices_are_read_from_flags_and_positionals(self):
        self.assertEqual(self.command.options[3].choices, ["ring", "direct"])
        self.assertEqual(self.command.positionals[0].choices, ["machines", "models"])

    def test_choices_are_read_from_sentences_that_only_list_them(self):
        for text, choices in {"megatron or deepspeed": ["megatron", "deepspeed"],
                              "what to list: plans, models": ["plans", "models"],
                              "machine, model or plan": ["machine", "model", "plan"],
                              "a file, or a name": [], "measurements": []}.items():
            self.assertEqual(make_manual.Entry(["KIND"], "", text).choices, choices)

    def test_subcommands_are_not_options(self):
        self.assertEqual([entry.names for entry in self.command.subcommands], [["machine"]])

    def test_kinds_and_examples_are_read_from_the_footer(self):
        self.assertEqual([entry.names for entry in self.command.kinds], [["machines"]])
        self.assertEqual(self.command.examples, ["orrery simulate --fold"])


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class BuiltCommand(unittest.TestCase):
    """Reads --help with one crude pattern, so that a mistake of the parser shows as a missing word."""

    def setUp(self):
        self.manual = pathlib.Path(os.environ["ORRERY_MANUAL"])

    def help_texts(self, path: list[str]) -> dict[str, str]:
        text = subprocess.run([os.environ["ORRERY_BINARY"], *path, "--help"], capture_output=True,
                              text=True, check=True).stdout
        texts = {" ".join(path): text}
        section = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^  (\w\S*)", section, re.MULTILINE):
            texts.update(self.help_texts([*path, name]))
        return texts

    def test_every_subcommand_and_flag_of_the_help_is_in_the_man_page_and_the_completions(self):
        texts = self.help_texts([])
        self.assertIn("simulate", texts)
        page = (self.manual / "orrery.1").read_text().replace("\\-", "-")
        bash = (self.manual / "orrery.bash").read_text()
        zsh = (self.manual / "_orrery").read_text()
        fish = (self.manual / "orrery.fish").read_text()
        for path, text in texts.items():
            self.assertIn(f'"{" ".join(["orrery", *path.split()])}")', bash)
            self.assertIn(path, page)
            # Examples, and what stands in back-quotes, may hold other programs' flags.
            options = re.sub(r"`[^`]*`", "", text.partition("\nExamples:\n")[0])
            for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", options):
                with self.subTest(command=path, flag=flag):
                    self.assertRegex(page, rf"\\fB{flag}\\fR")
                    self.assertRegex(bash, rf"{flag}[ \"]")
                    self.assertRegex(zsh, rf"{flag}( |$)")
                    self.assertRegex(fish, rf"-l {flag[2:]} ")

    def test_bash_offers_the_subcommands_and_their_flags(self):
        script = (f'source {self.manual}/orrery.bash; COMP_WORDS=(orrery "$@"); COMP_CWORD=$#; _orrery; '
                  'echo "${COMPREPLY[*]}"')

        binary = pathlib.Path(os.environ["ORRERY_BINARY"]).resolve()

        def offered(*words: str) -> list[str]:
            return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"},
                                  check=True).stdout.split()

        self.assertEqual(offered("sim"), ["simulate"])
        self.assertIn("--machine", offered("simulate", "--mach"))
        self.assertNotIn("--machine", offered("--mach"))
        self.assertEqual(offered("simulate", "--recompute", "sel"), ["selective"])
        self.assertEqual(offered("simulate", "--machine", "dgx-a100-8"), ["dgx-a100-80g"])
        self.assertEqual(offered("help", "simu"), ["simulate"])
        self.assertEqual(offered("list", "mach"), ["machines"])
        self.assertEqual(offered("show", "mach"), ["machine"])
        self.assertEqual(offered("show", "machine", "dgx-a100-8"), ["dgx-a100-80g"])
        self.assertEqual(offered("show", "model", "gpt3-175"), ["gpt3-175b"])
        self.assertIn("gpt3-175b-1024", offered("show", "plan", "gpt3-175b-10"))
        self.assertIn("gpt3-175b-1024", offered("compare", "gpt3-175b-10"))
        self.assertEqual(offered("collective", "all_g"), ["all_gather"])
        self.assertEqual(offered("import", "mega"), ["megatron"])
        self.assertEqual(offered("calibrate", "gem"), ["gemm"])

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_man_page_is_clean_roff(self):
        run = subprocess.run(["groff", "-ww", "-man", "-Tascii", self.manual / "orrery.1"],
                             capture_output=True, text=True, check=True)
        self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    unittest.main()
