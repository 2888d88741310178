# SPDX-License-Identifier: Apache-2.0
"""tools/fit_trust.py on made rows, whose errors are known."""
import importlib.util
import math
import pathlib
import random
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("fit_trust", ROOT / "tools/fit_trust.py")
fit_trust = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fit_trust)


def made_rows(spread, models=20, rows=4):
    """Normal errors, by model and row alike, that a time of 2 has."""
    draw = random.Random(1)
    made = []
    for model in range(models):
        of_model = draw.gauss(0, spread)
        for row in range(rows):
            published = 2 * math.exp(of_model + draw.gauss(0, spread))
            made.append(fit_trust.Row("made", {
                "rate": False, "kind": "dense", "framework": "one", "coefficients": "fitted", "machine": "box",
                "predicted": 2, "published": published, "key": f"model={model} row={row}"}))
    return made


class FitTrust(unittest.TestCase):
    def test_a_rate_is_a_time_with_the_other_sign(self):
        row = {"kind": "dense", "framework": "one", "coefficients": "fitted", "machine": "box", "key": "a=1",
               "predicted": 2.0, "published": 1.0}
        self.assertAlmostEqual(fit_trust.Row("t", {**row, "rate": False}).e, -math.log(2))
        self.assertAlmostEqual(fit_trust.Row("t", {**row, "rate": True}).e, math.log(2))

    def test_what_it_left_out_lies_inside_four_times_of_five(self):
        # 80 rows of 20 models: a binomial of 0.8 has a deviation of 0.045, and models count as one for the half of it.
        inside = fit_trust.cross_validate(made_rows(0.1))
        covered = sum(hit for _, hit, _ in inside) / len(inside)
        self.assertGreater(covered, 0.65)
        self.assertLess(covered, 0.93)

    def test_bounds_grow_with_the_errors(self):
        names = ("dense", "one", "fitted")
        small, large = (fit_trust.Fit(made_rows(spread)).bounds(names) for spread in (0.05, 0.2))
        self.assertLess(large[0], small[0])
        self.assertGreater(large[1], small[1])
        # Ten percent of a normal distribution of deviation sqrt(2) 0.2 lie below -0.362.
        self.assertAlmostEqual(large[0], -0.36, delta=0.15)

    def test_bytes_take_nothing_from_the_errors_of_times(self):
        # Times are off by a third. Of ten predictions of bytes eight are off by 0.1 % and two by 1 %, one of them three
        # times with equal bytes: the narrowest interval holds 85 % of their weights, 9 + sqrt(3).
        byte_rows = [fit_trust.Row("made", {
            "rate": False, "kind": "memory_dense", "framework": "one", "coefficients": "pytorch", "machine": "box",
            "predicted": 2 + i, "published": (2 + i) * math.exp(0.001 if i < 8 else 0.01), "key": f"model=1 row={i}"})
            for i in [*range(10), 9, 9]]
        self.assertEqual(len({row.fold for row in byte_rows}), 10)
        fit = fit_trust.Fit(made_rows(0.3) + byte_rows)
        self.assertAlmostEqual(fit.sigma(("memory_dense", "one", "pytorch")), 0.01 / fit_trust.EIGHTY)
        self.assertEqual(fit.sigma(("driver_experts", "another", "pytorch")), fit.sigma(("memory_dense", "one", "pytorch")))
        self.assertNotIn("pytorch", fit.parts["origin"])
        low, high = fit.bounds(("memory_dense", "one", "pytorch"))
        self.assertTrue(-0.002 < low < 0.001 and 0.009 < high < 0.013)

    def test_the_shipped_file_has_what_the_tool_writes(self):
        text = (ROOT / "configs/trust/errors.yaml").read_text()
        for key in ("floor: 0.02", "kinds:", "frameworks:", "origins:", "rests:", "cells:", "validated:"):
            self.assertIn(key, text)


if __name__ == "__main__":
    unittest.main()
