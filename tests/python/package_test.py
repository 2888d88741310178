# SPDX-License-Identifier: Apache-2.0
"""The Python package answers as the command does."""
import ast
import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import orrery
import run_notebook

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEP = {"model": "gpt2", "machine": "dgx-a100-80g", "devices": 8, "global_batch": 64}
WALL = ("timing",)  # of the computer, not of the step


def command(*words):
    return subprocess.run([os.environ["ORRERY_BINARY"], *words], capture_output=True, text=True)


class Commands(unittest.TestCase):
    def test_a_result_has_what_the_command_prints(self):
        words = ["simulate", "--model", "gpt2", "--machine", "dgx-a100-80g", "--devices", "8", "--global-batch", "64"]
        printed = json.loads(command(*words, "--json").stdout)
        result = orrery.simulate(**STEP)
        own = result.asdict()
        self.assertEqual(list(printed), list(own))
        self.assertEqual({name: value for name, value in printed.items() if name not in WALL},
                         {name: value for name, value in own.items() if name not in WALL})
        self.assertEqual(type(result).__name__, "SimulateResult")
        self.assertEqual([field.name for field in dataclasses.fields(result)], list(printed))
        self.assertEqual(dataclasses.asdict(result.breakdown_s), printed["breakdown_s"])
        self.assertEqual(dataclasses.replace(result, mfu=1).mfu, 1)

    def test_an_error_has_the_text_of_the_command(self):
        words = ["simulate", "--model", "gtp2", "--machine", "dgx-a100-80g", "--tp", "two"]
        with self.assertRaises(orrery.Error) as caught:
            orrery.simulate(model="gtp2", machine="dgx-a100-80g", tp="two")
        run = command(*words)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(str(caught.exception) + "\n", run.stderr)
        self.assertEqual({mistake.where for mistake in caught.exception.mistakes}, {"--model", "--tp"})

    def test_an_unknown_keyword_is_a_mistake_with_what_may_be_meant(self):
        with self.assertRaisesRegex(orrery.Error, "unknown option --globl-batch \\(did you mean .--global-batch"):
            orrery.simulate(**STEP, globl_batch=8)

    def test_a_value_is_never_taken_for_an_option(self):
        with self.assertRaisesRegex(orrery.Error, "--model: found '--help'"):
            orrery.simulate(model="--help", machine="dgx-h100")

    def test_a_plan_is_a_name_with_fields_over_it_or_a_dict(self):
        base = {"model": "llama-3-8b", "machine": "dgx-h100", "allow_oom": True}
        named = orrery.estimate(model="llama-3-8b", machine="dgx-h100", plan=orrery.Plan("llama-3-8b-8", zero=3))
        fields = {**orrery.Plan("llama-3-8b-8").asdict(), "zero": 3}
        fields = {name: value for name, value in fields.items() if value not in ("", None)}
        same = orrery.estimate(model="llama-3-8b", machine="dgx-h100", plan=fields)
        self.assertEqual(named.step_time_s, same.step_time_s)
        with self.assertRaises(orrery.Error):
            orrery.simulate(**base, plan={"tpp": 2})

    def test_a_model_may_be_its_fields_and_an_id_of_hugging_face(self):
        config = json.loads((ROOT / "configs/models/gpt2.json").read_text())
        self.assertEqual(orrery.Model(config).parameters.total, orrery.Model("gpt2").parameters.total)
        with self.assertWarns(orrery.Note):
            by_id = orrery.estimate(model="nobody/GPT2", machine="dgx-a100-80g", devices=8)
        self.assertEqual(by_id.step_time_s, orrery.estimate(model="gpt2", machine="dgx-a100-80g", devices=8).step_time_s)

    def test_series_are_arrays(self):
        sizes = orrery.collective("all_reduce", machine="dgx-h100", devices=8, min="1MiB", max="64MiB")
        column = sizes.rows.column("time_s") if "rows" in sizes else sizes.sizes.column("time_s")
        self.assertTrue((column[1:] >= column[:-1]).all())

    def test_serving_a_study_and_a_search(self):
        served = orrery.serve(model="llama-3.1-8b", machine="dgx-h100", requests=10)
        self.assertEqual((served.requests, served.refused, served.rejected), (10, 0, 0))
        rows = orrery.sweep({"kind": "simulate", **{name: STEP[name] for name in ("model", "machine", "devices")},
                             "plan": {"global_batch": 64}, "vary": {"plan.tp": [1, 2]}}).rows
        self.assertEqual(rows[0].step_time_s, orrery.simulate(**STEP, tp=1).step_time_s)

    def test_other_threads_run_meanwhile(self):
        # With the lock held the counter would stand still while the native half works.
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        orrery.simulate(**STEP)
        during = counted[0] - before
        stop.set()
        thread.join()
        self.assertGreater(during, 100)

    def test_a_table_of_published_runs_has_the_mean_of_its_errors(self):
        table = orrery.validate(table="korthikanti2022_table5")
        errors = [abs(row.error) for row in table.predictions if row.scored]
        self.assertEqual(len(errors), table.scored_rows)
        self.assertAlmostEqual(table.mape, sum(errors) / len(errors))

    def test_no_plan_that_is_found_is_faster_than_the_bound(self):
        found = orrery.plan(model="gpt2", machine="dgx-a100-80g", devices=4, global_batch=16)
        self.assertLessEqual(found.bound_s, found.best.step_time_s)
        plan = {name: value for name, value in found.best.plan.asdict().items() if value != ""}
        run = orrery.simulate(model="gpt2", machine="dgx-a100-80g", plan=plan)
        self.assertEqual(run.step_time_s, found.best.step_time_s)

    def test_the_package_is_the_command(self):
        for words in (["show", "model", "gpt2"], ["show", "model", "gtp2"]):
            run = subprocess.run([sys.executable, "-m", "orrery", *words], capture_output=True, text=True)
            other = command(*words)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (other.returncode, other.stdout, other.stderr))


class Bounds(unittest.TestCase):
    def test_no_simulated_step_is_faster_than_its_bound(self):
        answer = orrery.bounds("gpt2", "dgx-a100-80g", devices=8, tp=[1, 2, 4, 3], global_batch=64)
        self.assertEqual(len(answer), 4)
        for row, tp in enumerate([1, 2, 4]):
            simulated = orrery.simulate(**STEP, tp=tp)
            self.assertLessEqual(answer.least_time_s[row], simulated.step_time_s)
            self.assertGreater(answer.least_time_s[row], 0.2 * simulated.step_time_s)
            self.assertIsNone(answer.mistake(row))
        self.assertTrue(math.isnan(answer.least_time_s[3]))
        self.assertIn("devices", answer.mistake(3))

    def test_a_column_that_is_no_field_is_a_mistake(self):
        with self.assertRaisesRegex(orrery.Error, "tpp"):
            orrery.bounds("gpt2", "dgx-a100-80g", tpp=[1, 2])
        with self.assertRaisesRegex(ValueError, "rows"):
            orrery.bounds("gpt2", "dgx-a100-80g", tp=[1, 2], pp=[1])


class Package(unittest.TestCase):
    def test_the_stubs_declare_what_the_package_has(self):
        stubs = ast.parse(pathlib.Path(orrery.__file__).with_name("__init__.pyi").read_text())
        declared = {node.name for node in stubs.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(set(orrery.__all__) - declared, set())
        simulate = next(node for node in stubs.body if isinstance(node, ast.FunctionDef) and node.name == "simulate")
        keywords = {argument.arg for argument in simulate.args.kwonlyargs}
        self.assertLessEqual({"model", "machine", "devices", "global_batch", "zero"}, keywords)

    def test_notebooks_run(self):
        for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb")):
            with self.subTest(notebook=path.name), contextlib.redirect_stdout(io.StringIO()):
                run_notebook.run(path)


if __name__ == "__main__":
    unittest.main()
