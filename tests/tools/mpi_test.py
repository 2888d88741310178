# SPDX-License-Identifier: Apache-2.0
"""Under each library of MPI: programs of plans, the preload library, `orrery measure`. Skipped without one."""
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from schema_test import mistakes, schema

BINARY = os.environ.get("ORRERY_BINARY", "")
BUILD = pathlib.Path(BINARY).parent
LIBRARIES = [name for name in ("openmpi", "mpich") if (BUILD / "mpi" / name / "mpi_plain").exists()]
# OpenMPI asks twice before it runs as root, and before there are more ranks than cores.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
PATIENCE = 300
GPT = {"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 4, "n_inner": None, "n_positions": 64,
       "vocab_size": 256, "activation_function": "gelu_new", "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0}
EXPERTS = {"model_type": "mixtral", "hidden_act": "silu", "num_hidden_layers": 2, "hidden_size": 64,
           "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64, "vocab_size": 256,
           "max_position_embeddings": 64, "num_local_experts": 4, "num_experts_per_tok": 2,
           "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "rope_theta": 1e6}
# Schedules, tp, pp, dp, ep, ZeRO: model, flags. Two make every kind of call; tests/slow/live_ranks runs all of them.
PLANS = {
    "tp_pp": (GPT, "--tp 2 --pp 2 --global-batch 4"),
    "ep_zero_3": (EXPERTS, "--dp 2 --ep 2 --zero 3 --global-batch 2"),
}
MORE_PLANS = {
    "gpipe": (GPT, "--pp 2 --schedule gpipe --global-batch 4"),
    "interleaved": (GPT, "--pp 2 --chunks 2 --schedule interleaved --global-batch 4"),
    "zb_v": (GPT, "--pp 2 --chunks 2 --schedule zb-v --global-batch 4"),
    "zero_1": (GPT, "--dp 2 --zero 1 --global-batch 4"),
    "zero_3": (GPT, "--dp 2 --zero 3 --global-batch 4"),
    "ep": (EXPERTS, "--dp 2 --ep 2 --global-batch 2"),
}
PROFILE = "kind,bytes,block,seconds\npack,64,1,{pack}\nunpack,64,1,{pack}\nlibrary,64,1,1e-3\nmessage,64,0,{pack}\n"


def orrery(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE)


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
@unittest.skipUnless(LIBRARIES, "built without MPI (Debian: libopenmpi-dev openmpi-bin, libmpich-dev mpich)")
class MpiCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def good(self, command: list, **more) -> str:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                              env={**ENVIRONMENT, **more.pop("env", {})}, **more)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def mpi(self, library: str, ranks: int, *command, env=None) -> str:
        return self.good([f"mpiexec.{library}", "-n", ranks, *command], env=env or {})


class PlanCase(MpiCase):
    def export(self, name: str, *more: str) -> pathlib.Path:
        model, flags = {**PLANS, **MORE_PLANS}[name]
        (self.path / "model.json").write_text(json.dumps(model))
        folder = self.path / name
        done = orrery("export", "mpi", "--model", str(self.path / "model.json"), "--sequence", "64", *flags.split(),
                      "--out", str(folder), "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.exported = json.loads(done.stdout)
        return folder

    def assert_calls_come_back_from_the_plan(self, folder: pathlib.Path, plan: str):
        """Plan, program, the program without its calls, the calls from the plan alone: the same program."""
        listing = folder / "listing.c"
        (folder / "plan.yaml").write_text(plan)
        record = json.loads(self.good([BINARY, "mpi", "strip", listing]))
        self.assertNotRegex(record["code"], r"MPI_I\w+ *\(")
        (folder / "serial.json").write_text(json.dumps({"program": "listing.c", "code": record["code"]}))
        (folder / "whole.json").write_text(self.good([BINARY, "mpi", "complete", folder / "serial.json", "--plan",
                                                      folder / "plan.yaml", "--model", self.path / "model.json"]))
        self.assertEqual(self.good([BINARY, "mpi", "restore", folder / "whole.json"]), listing.read_text())

    def compile(self, folder: pathlib.Path, library: str) -> pathlib.Path:
        """What no plan changes is built with Orrery; the tables are compiled once for both libraries."""
        if not (folder / "plan.o").exists():
            self.good(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-c", folder / "plan.cc", "-o", folder / "plan.o"])
        program = folder / f"plan_{library}"
        self.good([f"mpicxx.{library}", folder / "plan.o", BUILD / "mpi" / library / "libplan_runtime.a", "-o", program])
        return program

    def assert_order(self, name: str) -> pathlib.Path:
        """Every rank makes the simulated calls in the simulated order, and both libraries compute the same."""
        folder = self.export(name)
        said = set()
        for library in LIBRARIES:
            with self.subTest(plan=name, library=library):
                text = self.mpi(library, self.exported["ranks"], self.compile(folder, library),
                                "--order", folder / "order.txt", "--trace", folder / library)
                said.add(re.sub(r"step .*", "", text))
                self.assertIn(f"{self.exported['calls']} exchanges, 0 wrong elements, 0 calls out of order", text)
        self.assertEqual(len(said), 1, "the libraries disagree about elements")
        return folder


class Programs(PlanCase):
    def test_every_rank_makes_the_simulated_calls_in_the_simulated_order(self):
        self.assert_order("ep_zero_3")
        folder = self.assert_order("tp_pp")
        self.assert_calls_come_back_from_the_plan(folder, "tp: 2\npp: 2\nglobal_batch: 4\nsequence: 64\n")
        self.assertEqual(mistakes(self.exported, schema("export")), [])
        self.assert_as_in_the_trace(folder)
        self.assert_a_rank_that_hangs_is_named(folder)
        self.assert_a_wrong_order_and_a_wrong_number_of_ranks_are_found(folder)

    def assert_as_in_the_trace(self, folder: pathlib.Path):
        """Beside another view of the run: `orrery simulate --trace`, group by group and rank by rank."""
        done = orrery("simulate", "--model", str(self.path / "model.json"), "--machine", "dgx-a100-80g", "--sequence", "64",
                      *PLANS["tp_pp"][1].split(), "--no-fold", "--no-shortcuts", "--trace", str(folder / "trace.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        simulated = collections.Counter()
        for event in json.loads((folder / "trace.json").read_text())["traceEvents"]:
            group = event.get("args", {}).get("group")
            if event["ph"] == "X" and group:
                simulated[event["pid"], group] += 1
        made = collections.Counter()
        messages = 0
        for rank in range(4):
            for line in (folder / f"{LIBRARIES[0]}.{rank}.txt").read_text().splitlines():
                _, kind, what, _ = line.split()
                is_message = kind in ("send", "receive")
                made[rank, "pp" if is_message else what] += 1
                messages += is_message
        self.assertEqual({key: number for key, number in simulated.items() if key in made}, dict(made))
        self.assertEqual(messages, 4 * 8)  # of every rank: 4 microbatches, forwards and back

    def assert_a_rank_that_hangs_is_named(self, folder: pathlib.Path):
        done = subprocess.run([f"mpiexec.{LIBRARIES[0]}", "-n", "4", folder / f"plan_{LIBRARIES[0]}", "--telemetry",
                               folder / "run", "--hang", "1", "0", "--limit", "1"], capture_output=True, timeout=PATIENCE,
                              env=ENVIRONMENT)
        self.assertNotEqual(done.returncode, 0)
        verdict = orrery("diagnose", *map(str, folder.glob("run.*.jsonl")), "--timeout", "500 ms", "--json")
        self.assertNotEqual(verdict.stdout, "", verdict.stderr)
        findings = json.loads(verdict.stdout)["findings"]
        self.assertEqual({(finding["syndrome"], *finding["ranks"]) for finding in findings}, {("missing_rank", 1)})

    def assert_a_wrong_order_and_a_wrong_number_of_ranks_are_found(self, folder: pathlib.Path):
        lines = (folder / "order.txt").read_text().splitlines(keepends=True)
        lines[0] = lines[0].rstrip("\n") + "9\n"  # ten times as many elements
        (folder / "wrong.txt").write_text("".join(lines))
        for ranks, order in ((4, "wrong.txt"), (3, "order.txt")):
            done = subprocess.run([f"mpiexec.{LIBRARIES[0]}", "-n", str(ranks), folder / f"plan_{LIBRARIES[0]}", "--order",
                                   folder / order], capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout + done.stderr, "expected '|found 3 ranks, expected 4")

    def test_workers_that_processes_do_not_divide_are_refused(self):
        done = subprocess.run([f"mpiexec.{LIBRARIES[0]}", "-n", "3", BUILD / "mpi" / LIBRARIES[0] / "orrery-mpi", "rounds"],
                              capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--workers: expected a multiple of the processes, 3: 8", done.stdout + done.stderr)

    def test_a_plan_is_replayed_and_its_machine_fitted(self):
        (self.path / "model.json").write_text(json.dumps(GPT))
        done = orrery("replay", "--model", str(self.path / "model.json"), "--sequence", "64", "--tp", "2", "--global-batch",
                      "1", "-n", "2", "--repeat", "1", "--output", str(self.path / "mine.yaml"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(mistakes(said, schema("replay")), [])
        self.assertEqual([each["name"] for each in said["classes"]], ["streams", "products", "collectives"])
        self.assertGreater(said["measured_s"], 0)
        shown = orrery("show", "machine", str(self.path / "mine.yaml"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("measured: orrery replay", shown.stdout)

    def test_what_cannot_be_replayed_is_a_mistake(self):
        for arguments, found in ((["--tp", "2"], "--model"), (["--model", "gpt2", "--mpi", "lam"], "openmpi or mpich"),
                                 (["--model", "gpt2", "--tp", "2", "-n", "3"], "-n"), (["--model", "gpt2", "--shrink", "0"], "--shrink"),
                                 (["no-such-plan", "--model", "gpt2"], "no-such-plan")):
            done = orrery("replay", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(found, done.stderr)

    def test_shrinking_keeps_kinds_and_order(self):
        kinds = []
        for shrink in ("1", "4"):
            folder = self.export("zb_v", "--shrink", shrink)
            self.assertEqual(self.exported["layers"], 4)  # a layer for each of 2 stages' 2 chunks
            kinds.append([line.split()[:2] for line in (folder / "order.txt").read_text().splitlines()])
        self.assertEqual(kinds[0], kinds[1])
        self.export("zero_1", "--shrink", "4")
        self.assertEqual(self.exported["layers"], 1)


class Datatypes(MpiCase):
    def test_a_program_under_the_preload_library_prints_what_it_prints_without(self):
        for name, seconds in (("always", 1e-9), ("never", 1)):
            (self.path / name).write_text(PROFILE.format(pack=seconds))
        for library in LIBRARIES:
            program = BUILD / "mpi" / library / "mpi_plain"
            alone = self.mpi(library, 2, program)
            self.assertRegex(alone, r"^[0-9a-f]{16} [0-9a-f]{16}\n$")
            for profile, sends in ((None, 0), ("always", 12), ("never", 0)):
                with self.subTest(library=library, profile=profile):
                    environment = {"LD_PRELOAD": str(BUILD / f"libtempi_{library}.so"), "TEMPI_REPORT": "1"}
                    if profile:
                        environment["TEMPI_PROFILE"] = str(self.path / profile)
                    text = self.mpi(library, 2, "env", *(f"{key}={value}" for key, value in environment.items()), program)
                    self.assertIn(alone, text)
                    self.assertIn(f"tempi: rank 0: 6 packs, 6 unpacks, {sends} sends", text)

    def test_a_profile_that_is_none_is_named_and_sends_stay_the_librarys(self):
        (self.path / "profile").write_text("kind,bytes\n")
        library = LIBRARIES[0]
        program = BUILD / "mpi" / library / "mpi_plain"
        text = self.mpi(library, 2, "env", f"LD_PRELOAD={BUILD / f'libtempi_{library}.so'}", "TEMPI_REPORT=1",
                        f"TEMPI_PROFILE={self.path / 'profile'}", program)
        self.assertIn("profile:1: expected the header kind,bytes,block,seconds; sends are the library's", text)
        self.assertIn("0 sends, 0 receives", text)

    def test_packing_is_measured_and_its_bytes_equal_the_librarys(self):
        for library in LIBRARIES:
            done = orrery("measure", "pack", "--mpi", library, "--rounds", "1", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(mistakes(json.loads(done.stdout), schema("measure")), [])
            rows = json.loads(done.stdout)["rows"]
            self.assertEqual(len(rows), 17)
            for row in rows:
                self.assertIs(row["equal"], True, row["type"])
                self.assertGreater(min(row["library_us"], row["ours_us"]), 0)

    def test_the_method_is_the_models(self):
        (self.path / "always").write_text(PROFILE.format(pack=1e-9))
        done = orrery("measure", "send", "--rounds", "1", "--profile", str(self.path / "always"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            chunks = -(-row["bytes"] // (256 << 10))  # one chunk is packed; several overlap
            self.assertEqual(row["chosen"], "packed" if chunks == 1 else "pipelined", row["type"])
            self.assertAlmostEqual(row["regret"], row["chosen_us"] / min(row[f"{m}_us"] for m in (
                "library", "packed", "pipelined")) - 1, delta=0.01 * (1 + row["regret"]))  # times are rounded

    def test_what_cannot_be_measured_is_a_mistake(self):
        (self.path / "profile").write_text("kind,bytes\n")
        for arguments, found in ((["measure", "park"], "pack"), (["measure", "pack", "--mpi", "lam"], "openmpi or mpich"),
                                 (["measure", "pack", "--rounds", "0"], "--rounds"),
                                 (["measure", "pack", "--profile", "x"], "is for send"),
                                 (["measure", "send", "--profile", "/nowhere"], "/nowhere"),
                                 (["measure", "send", "--profile", str(self.path / "profile")], "profile:1: expected the header")):
            done = orrery(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(found, done.stderr)

    def test_without_mpi_the_command_says_how_to_get_it(self):
        done = subprocess.run([BINARY, "measure", "pack"], capture_output=True, text=True,
                              env={**os.environ, "ORRERY_MPI_PROGRAMS": str(self.path)})
        self.assertEqual(done.returncode, 2)
        self.assertIn("libopenmpi-dev", done.stderr)


if __name__ == "__main__":
    unittest.main()
