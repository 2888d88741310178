# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/measure_gpu.py with a fake GPU whose times are known; no GPU is needed."""
import contextlib
import csv
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
_spec = importlib.util.spec_from_file_location("measure_gpu", ROOT / "tools/measure_gpu.py")
measure_gpu = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(measure_gpu)


class FakeBackend:
    """A device of 100 TFLOP/s and 1 TB/s that needs 5 us to start a kernel and 15 to be told; launches are their times."""

    framework = "fake"
    version = "1.0"
    device = "Fake, 80 GB"  # a comma, as names may have

    def __init__(self):
        self.sets = {}

    def types(self):
        return "bf16", "fp8"

    def elapsed_us(self, launches, calls):
        return sum(max(15, launches[i % len(launches)]) for i in range(calls))

    def replays_us(self, launches, calls, runs):
        return [sum(launches[i % len(launches)] for i in range(calls)) for _ in range(runs)]

    def host_us(self, _launch, calls):
        return 7.0 * calls

    def rest(self, _seconds):
        pass

    def gemm(self, dtype, m, n, k, sets):
        self.sets[dtype, m, n, k] = sets
        return [5 + 2 * m * n * k / (100e6 if dtype == "bf16" else 200e6)] * sets

    def attention(self, _dtype, _library, batch, heads, kv_heads, head_dim, queries, keys, _causal, backward, sets):
        return [5 + (5 if backward else 2) * batch * heads * queries * keys * head_dim / 100e6
                + batch * kv_heads * keys * head_dim * 4 / 1e6] * sets

    def grouped(self, _dtype, experts, m, n, k, sets):
        return [5 + 2 * experts * m * n * k / 100e6] * sets

    def stream_kernel(self, _kernel, rows, width, sets):
        return [5 + rows * width / 1e6] * sets

    def copy(self, _direction, size):
        return 5 + size / 1e6

    def empty(self):
        return 5.0


class HotBackend(FakeBackend):
    """Runs at 0.9 of its rate once it has been busy for three seconds without a pause."""

    def __init__(self):
        super().__init__()
        self.busy_us = 0.0
        self.pauses = 0

    def rest(self, seconds):
        self.busy_us = 0.0
        self.pauses += seconds > 0

    def elapsed_us(self, launches, calls):
        time = super().elapsed_us(launches, calls) / (0.9 if self.busy_us >= 3e6 else 1)
        self.busy_us += time
        return time


def run(arguments, make_backend=FakeBackend):
    """Exit status, rows of each file, standard error."""
    errors = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(errors), \
            contextlib.redirect_stdout(io.StringIO()):
        try:
            status = measure_gpu.main([*arguments, "--out", f"{folder}/new"], make_backend)
        except SystemExit as stop:
            status = stop.code
        files = {path.name: list(csv.DictReader(path.open()))
                 for path in pathlib.Path(folder).glob("new/*")}
    return status, files, errors.getvalue()


class MeasureGpu(unittest.TestCase):
    def test_every_kind_is_a_file_of_its_own_with_its_columns(self):
        status, files, _ = run(list(measure_gpu.COLUMNS))
        self.assertEqual(status, 0)
        self.assertEqual(set(files), {f"{kind}.csv" for kind in measure_gpu.COLUMNS})
        for kind, columns in measure_gpu.COLUMNS.items():
            rows = files[f"{kind}.csv"]
            self.assertEqual(tuple(rows[0]), ("device", "framework", "version") + columns)
            self.assertEqual({row["device"] for row in rows}, {"Fake, 80 GB"})

    def test_times_are_those_of_one_launch(self):
        _, files, _ = run(["gemm", "launch", "copy"])
        for row in files["gemm.csv"]:
            m, n, k = (int(row[name]) for name in "mnk")
            rate = 100e6 if row["dtype"] == "bf16" else 200e6
            self.assertAlmostEqual(float(row["latency_us"]), 5 + 2 * m * n * k / rate, delta=1e-4 + 1e-9 * m * n * k)
        self.assertEqual({row["kernel"]: float(row["latency_us"]) for row in files["launch.csv"]},
                         {"empty": 15, "host_dispatch": 7, "graph": 5})
        self.assertEqual({row["direction"] for row in files["copy.csv"]}, set(measure_gpu.DIRECTIONS))

    def test_kernels_shorter_than_their_launches_are_timed_in_graphs(self):
        # 16 x 128 x 128 takes 5.005 us of the device and 15 of the host.
        _, files, _ = run(["gemm", "--types", "bf16"])
        self.assertEqual(files["gemm.csv"][0]["latency_us"], "5.0052")

    def test_operands_rotate_through_more_than_the_caches_as_far_as_sets_go(self):
        backend = FakeBackend()
        run(["gemm", "--types", "bf16"], lambda: backend)
        for (_, m, n, k), sets in backend.sets.items():
            self.assertTrue(sets == measure_gpu.MOST_OPERAND_SETS
                            or sets * 2 * (m * k + n * k + m * n) > measure_gpu.CACHE_BYTES)

    def test_shapes_of_a_file_are_measured_instead_of_the_sweep(self):
        with tempfile.TemporaryDirectory() as folder:
            shapes = pathlib.Path(folder) / "mine.csv"
            shapes.write_text("note,dtype,m,n,k\na,bf16,48,100,100\nb,fp8,64,100,1000\n")
            status, files, _ = run(["gemm", "--shapes", str(shapes)])
            self.assertEqual(status, 0)
            self.assertEqual([(row["dtype"], row["m"], row["latency_us"]) for row in files["gemm.csv"]],
                             [("bf16", "48", "5.0096"), ("fp8", "64", "5.0640")])
            # What a run writes is such a file.
            for kind in measure_gpu.SHAPED:
                _, files, _ = run([kind, "--types", "bf16"])
                rows = files[f"{kind}.csv"]
                with shapes.open("w", newline="") as stream:
                    writer = csv.DictWriter(stream, rows[0])
                    writer.writeheader()
                    writer.writerows(rows)
                self.assertEqual(run([kind, "--shapes", str(shapes)])[1], files)

    def test_mistakes_in_shapes_name_line_and_column(self):
        with tempfile.TemporaryDirectory() as folder:
            shapes = pathlib.Path(folder) / "mine.csv"
            for text, expected in (("dtype,m,n\nbf16,1,2\n", "missing: k"),
                                   ("dtype,m,n,k\nbf16,1,2,3\nbf16,1,x,3\n", "mine.csv:3: n: found 'x'"),
                                   ("dtype,m,n,k\nint9,1,2,3\n", "mine.csv:2: dtype: found 'int9', expected one of bf16"),
                                   ("dtype,m,n,k\n", "expected rows with the columns dtype, m, n, k")):
                shapes.write_text(text)
                status, files, error = run(["gemm", "--shapes", str(shapes)])
                self.assertEqual((status, files), (2, {}))
                self.assertIn(expected, error)
            self.assertIn("found copy, expected one of gemm", run(["copy", "--shapes", str(shapes)])[2])
            self.assertIn("found gemm stream", run(["gemm", "stream", "--shapes", str(shapes)])[2])
            self.assertIn("No such file", run(["gemm", "--shapes", f"{folder}/none.csv"])[2])

    def test_clocks_are_read_cold_in_bursts_and_at_the_end_of_the_loop(self):
        backend = HotBackend()
        status, files, _ = run(["clocks", "--types", "bf16", "--seconds", "20"], lambda: backend)
        self.assertEqual(status, 0)
        self.assertEqual([(row["state"], row["loop_s"]) for row in files["clocks.csv"]],
                         [("cold", "0.02"), ("sustained", "20")])
        cold, sustained = (float(row["latency_us"]) for row in files["clocks.csv"])
        self.assertAlmostEqual(cold, 5 + 2 * 8192**3 / 100e6, delta=1e-3)
        self.assertAlmostEqual(cold / sustained, 0.9, delta=1e-6)
        self.assertEqual(backend.pauses, measure_gpu.RUNS)
        # Ended before the limit acts: nothing is slower.
        _, files, _ = run(["clocks", "--types", "bf16", "--seconds", "2"], HotBackend)
        self.assertEqual(len({row["latency_us"] for row in files["clocks.csv"]}), 1)

    def test_types_choose_rows(self):
        _, files, _ = run(["gemm", "--types", "fp8"])
        self.assertEqual({row["dtype"] for row in files["gemm.csv"]}, {"fp8"})

    def test_shapes_fit_in_memory_and_cover_all_regions(self):
        shapes = list(measure_gpu.gemm_shapes())
        self.assertTrue(all(m * n + m * k + n * k <= 1 << 29 for m, n, k in shapes))
        self.assertTrue(any(min(shape) >= 8192 for shape in shapes))
        self.assertTrue(any(m < 128 for m, _, _ in shapes) and any(128 <= m < 1024 for m, _, _ in shapes))
        self.assertEqual(len(shapes), len(set(shapes)))

    def test_wrong_arguments_say_what_would_be_right(self):
        status, files, error = run(["gemm", "--types", "bf16,fp7"])
        self.assertEqual((status, files), (2, {}))
        self.assertIn("found 'fp7', expected some of bf16, fp16, fp8", error)
        self.assertEqual(run(["gem"])[0], 2)
        for seconds in ("0", "nan", "4000"):
            status, files, error = run(["clocks", "--seconds", seconds])
            self.assertEqual((status, files), (2, {}))
            self.assertIn("expected 1 to 3600", error)
        self.assertEqual(run([])[0], 2)

    def test_what_the_machine_lacks_is_said_and_nothing_is_written(self):
        status, files, error = run(["gemm", "--types", "fp16"])
        self.assertEqual((status, files), (2, {}))
        self.assertIn("has no fp16", error)

        def none():
            raise measure_gpu.NotPossible("PyTorch is not installed: pip install torch")
        status, files, error = run(["gemm"], none)
        self.assertEqual((status, files), (2, {}))
        self.assertIn("PyTorch is not installed", error)

    def test_a_run_that_fails_leaves_no_file(self):
        class Breaking(FakeBackend):
            def copy(self, _direction, size):
                if size > 4096:
                    raise RuntimeError("out of memory")
                return 1.0
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaises(RuntimeError):
                measure_gpu.main(["copy", "--out", folder], Breaking)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(os.access(os.environ.get("ORRERY_BINARY", ""), os.X_OK), "needs the built orrery")
    def test_its_gemms_are_what_calibrate_reads(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            measure_gpu.main(["gemm", "--types", "bf16", "--out", folder], FakeBackend)
            done = subprocess.run([os.environ["ORRERY_BINARY"], "calibrate", "gemm", f"{folder}/gemm.csv",
                                   "--machine", "dgx-a100-80g"], capture_output=True, text=True,
                                  env={**os.environ, "ORRERY_CONFIGS": str(ROOT / "configs")}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gemm_peak_share", done.stdout)


if __name__ == "__main__":
    unittest.main()
