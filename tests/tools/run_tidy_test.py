# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/run_tidy.py: what is checked, what is not checked again, what a budget leaves over."""
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("run_tidy", ROOT / "tools/run_tidy.py")
run_tidy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run_tidy)


class RunTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.build = self.root / "build/release"
        self.build.mkdir(parents=True)
        self.write(".clang-tidy", "Checks: -*")
        self.write("src/base/units.h", "")
        self.write("src/base/result.h", '#include "base/units.h"\n')
        self.write("src/base/a.cc", '#include "base/result.h"\n')
        self.write("src/base/b.cc", "")
        self.compile("src/base/a.cc", "src/base/b.cc", "build/release/generated.cc")

    def write(self, name: str, text: str):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def compile(self, *names: str):
        self.write("build/release/compile_commands.json", json.dumps(
            [{"file": str(self.root / name), "command": "g++ -c " + name} for name in names]))

    def git(self, *words: str):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@t", *words],
                       check=True, capture_output=True)

    def tidy(self, **options):
        return run_tidy.Tidy(self.build, self.root, **options)

    def names(self, everything: bool = False) -> list[str]:
        return [source.name for source, _ in self.tidy().sources(everything)]

    def pass_all(self):
        for _, stamp in self.tidy().sources(True):
            stamp.touch()

    def test_headers_are_followed_through_headers(self):
        names = [p.name for p in run_tidy.closure(self.root / "src/base/a.cc", self.root)]
        self.assertEqual(names, ["a.cc", "result.h", "units.h"])

    def test_without_a_main_branch_every_source_but_generated_ones_is_checked(self):
        self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_sources_that_compile_together_are_checked_one_by_one(self):
        both = [str(self.root / name) for name in ("src/base/a.cc", "src/base/b.cc")]
        self.write("build/release/Unity/unity_0_cxx.cxx", "".join(f'#include "{source}"\n' for source in both))
        unit = str(self.root / "build/release/Unity/unity_0_cxx.cxx")
        self.write("build/release/compile_commands.json", json.dumps([{"file": unit, "command": "g++ -c " + unit}]))
        self.assertEqual(self.names(), ["a.cc", "b.cc"])
        self.assertEqual([entry["command"] for entry in self.tidy().commands], ["g++ -c " + s for s in both])

    def test_a_clean_source_is_checked_again_when_a_header_below_it_changes(self):
        self.pass_all()
        self.assertEqual(self.names(), [])
        self.write("src/base/units.h", "int x;")
        self.assertEqual(self.names(), ["a.cc"])

    def test_a_clean_source_is_checked_again_when_the_rules_change(self):
        self.pass_all()
        self.write(".clang-tidy", "Checks: bugprone-*")
        self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_a_source_that_passed_the_quick_checks_has_not_passed_all(self):
        for _, stamp in self.tidy(quick=True).sources(True):
            stamp.touch()
        self.assertEqual(self.tidy(quick=True).sources(True), [])
        self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_on_a_branch_only_what_its_changes_reach_is_checked(self):
        self.git("init", "-q")
        self.git("add", "src")
        self.git("commit", "-qm", "main")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.write("src/base/units.h", "int x;")
        self.git("commit", "-qam", "branch")
        self.assertEqual(self.names(), ["a.cc"])
        self.assertEqual(self.names(everything=True), ["a.cc", "b.cc"])

    def test_a_spent_budget_starts_nothing(self):
        tidy = self.tidy(budget=1e-9)
        self.assertIsNone(tidy.check(self.root / "src/base/a.cc", self.root / "stamp"))


if __name__ == "__main__":
    unittest.main()
