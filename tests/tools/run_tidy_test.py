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
            [{"file": str(self.root / name), "command": f"g++ -c {self.root / name}"} for name in names]))

    def git(self, *words: str):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@t", *words],
                       check=True, capture_output=True)

    def tidy(self, **options):
        return run_tidy.Tidy(self.build, self.root, **options)

    def names(self, everything: bool = False) -> list[str]:
        return [source.name for unit in self.tidy().units(everything) for source in unit.sources]

    def pass_all(self, **options):
        for unit in self.tidy(**options).units(True):
            unit.stamp("")

    def compile_together(self):
        unit = self.root / "build/release/Unity/unity_0_cxx.cxx"
        self.write(str(unit), "".join(f'#include "{self.root / name}"\n' for name in ("src/base/a.cc", "src/base/b.cc")))
        self.write("build/release/compile_commands.json", json.dumps([{"file": str(unit), "command": f"g++ -c {unit}"}]))

    def test_headers_are_followed_through_headers(self):
        names = [p.name for p in run_tidy.closure(self.root / "src/base/a.cc", self.root)]
        self.assertEqual(names, ["a.cc", "result.h", "units.h"])

    def test_without_a_main_branch_every_source_but_generated_ones_is_checked(self):
        self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_sources_that_compile_together_are_checked_together(self):
        self.compile_together()
        (unit,) = self.tidy().units(True)
        self.assertEqual([source.name for source in unit.sources], ["a.cc", "b.cc"])
        self.assertEqual(unit.entry["command"], f"g++ -c {unit.main}")
        self.assertEqual(run_tidy.INCLUDE.findall(unit.main.read_text()), [str(source) for source in unit.sources])

    def test_a_finding_leaves_its_own_source_unclean(self):
        self.compile_together()
        (unit,) = self.tidy().units(True)
        unit.stamp(f"{self.root}/src/base/b.cc:1:2: error: too long [readability-function-size,-warnings-as-errors]\n")
        self.assertEqual(self.names(), ["b.cc"])

    def test_findings_that_may_hide_others_leave_all_unclean(self):
        self.compile_together()
        for findings in (f"{self.root}/src/base/units.h:1:2: error: wrong [bugprone-x]\n", "Segmentation fault\n",
                         f"{self.root}/src/base/b.cc:1:2: error: no type [clang-diagnostic-error]\n"):
            (unit,) = self.tidy().units(True)
            unit.stamp(findings)
            self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_a_clean_source_is_checked_again_when_a_header_below_it_changes(self):
        self.pass_all()
        self.assertEqual(self.names(), [])
        self.write("src/base/units.h", "int x;")
        self.assertEqual(self.names(), ["a.cc"])

    def test_a_clean_source_is_checked_again_when_the_rules_change(self):
        self.pass_all()
        self.write(".clang-tidy", "Checks: bugprone-*")
        self.assertEqual(self.names(), ["a.cc", "b.cc"])

    def test_rules_of_a_folder_hold_there_only(self):
        self.write("tests/c.cc", "")
        self.compile("src/base/a.cc", "tests/c.cc")
        self.pass_all()
        self.write("tests/.clang-tidy", "Checks: -performance-*")
        (unit,) = self.tidy().units(True)
        self.assertEqual([source.name for source in unit.sources], ["c.cc"])
        self.assertEqual((unit.main.parent / ".clang-tidy").read_text(), "Checks: -performance-*")
        self.assertEqual((unit.main.parent.parent / ".clang-tidy").read_text(), "Checks: -*")

    def test_a_source_that_passed_the_quick_checks_has_not_passed_all(self):
        self.pass_all(quick=True)
        self.assertEqual(self.tidy(quick=True).units(True), [])
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
        self.assertIsNone(tidy.check(tidy.units(True)[0]))


if __name__ == "__main__":
    unittest.main()
