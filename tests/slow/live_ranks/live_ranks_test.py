# SPDX-License-Identifier: Apache-2.0
"""Emitted programs on live ranks, 20 times each: the rank that hangs or is slow and the link that is late are named,
a clean run blames nobody.
Every kind of plan once: its calls stand in the simulated order."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from mpi_test import BINARY, ENVIRONMENT, GPT, LIBRARIES, MORE_PLANS, PATIENCE, MpiCase, PlanCase, mistakes, orrery, schema  # noqa: E402

RUNS = 20
WIDE = {**GPT, "n_layer": 1, "n_embd": 192, "n_head": 4}  # computes long enough for a factor of three to be seen


class LiveRanks(MpiCase):
    def program(self, library: str) -> pathlib.Path:
        (self.path / "model.json").write_text(json.dumps(WIDE))
        folder = self.path / "plan"
        done = orrery("export", "mpi", "--model", str(self.path / "model.json"), "--sequence", "64", "--dp", "4",
                      "--global-batch", "4", "--out", str(folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.good([f"mpicxx.{library}", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-O1", "-std=c++20",
                   *folder.glob("*.cc"), "-o", folder / "plan"])
        return folder / "plan"

    def verdicts(self, library: str, program: pathlib.Path, *flags: str) -> set:
        """(syndrome, rank) of all that `orrery diagnose` blames after a run. Who only shares its core with other programs
        gets it again before the limit; a rank that hangs is waited for that long."""
        limit = "3" if "--hang" in flags else "20"
        for old in self.path.glob("run.*.jsonl"):
            old.unlink()
        subprocess.run([f"mpiexec.{library}", "-n", "4", program, "--repeat", "6", "--limit", limit, "--telemetry",
                        self.path / "run", *flags], capture_output=True, timeout=PATIENCE, env=ENVIRONMENT)
        done = orrery("diagnose", *map(str, sorted(self.path.glob("run.*.jsonl"))), "--timeout", "1 s", "--json")
        self.assertNotEqual(done.stdout, "", done.stderr)
        findings = json.loads(done.stdout)["findings"]
        return {(finding["syndrome"], rank) for finding in findings for rank in finding["ranks"]}

    def test_the_rank_at_fault_is_named_and_nobody_else(self):
        for library in LIBRARIES:
            program = self.program(library)
            for run in range(RUNS):
                rank = run % 4
                with self.subTest(library=library, run=run):
                    self.assertEqual(self.verdicts(library, program, "--probe", "20"), set())
                    late = (rank + 1) % 4
                    self.assertEqual(self.verdicts(library, program, "--probe", "20", "--delay", str(rank), str(late), "20000"),
                                     {("slow_link", rank), ("slow_link", late)})
                    self.assertEqual(self.verdicts(library, program, "--slow", str(rank), "3"), {("straggler", rank)})
                    self.assertEqual(self.verdicts(library, program, "--hang", str(rank), "3"), {("missing_rank", rank)})


class EveryPlan(PlanCase):
    def test_every_rank_makes_the_simulated_calls_in_the_simulated_order(self):
        for name in MORE_PLANS:
            listing = self.assert_order(name) / "listing.c"
            checked = json.loads(self.good([BINARY, "mpi", "check", listing, "--ranks", str(self.exported["ranks"]), "--json"]))
            self.assertEqual({row["result"] for row in checked["rows"]}, {"passed"}, name)

    def test_the_folder_builds_and_tests_itself(self):
        folder = self.export("zero_1")
        for library in LIBRARIES[:1]:  # programs of the others are compiled and run above
            build = folder / f"build_{library}"
            self.good(["cmake", "-S", folder, "-B", build, f"-DMPI_CXX_COMPILER={shutil.which(f'mpicxx.{library}')}",
                       f"-DMPIEXEC_EXECUTABLE={shutil.which(f'mpiexec.{library}')}", "-DMPI_CXX_SKIP_MPICXX=ON",
                       "-DCMAKE_BUILD_TYPE=Debug"])
            self.good(["cmake", "--build", build])
            self.assertIn("100% tests passed", self.good(["ctest", "--test-dir", build]))

    def test_kernels_are_measured_in_the_columns_that_calibrate_reads(self):
        rows = self.path / "memory.csv"
        done = orrery("measure", "memory", "--rounds", "1", "--output", str(rows), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(mistakes(json.loads(done.stdout), schema("measure")), [])
        done = orrery("calibrate", "memory", str(rows), "--machine", "localhost", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(done.stdout)["fits"][0]["fitted"]["mean_after"], 1)


if __name__ == "__main__":
    unittest.main()
