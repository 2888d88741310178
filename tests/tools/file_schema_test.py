# SPDX-License-Identifier: Apache-2.0
"""docs/schema/*-file.json describe what shipped descriptions say, and are what tools/make_schemas.py makes."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import schema_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import schema_versions  # noqa: E402
MACHINES = ["dgx-h100", "tpu-v5p", "pim-gpt", "hiermem-opt", "rtx4080-pcie4-8"]


class Versions(unittest.TestCase):
    """A result {a: number, b?: "x" or "y"} whose schema is at 2.3, after a change."""

    RESULT = {"type": "object", "required": ["a"],
              "properties": {"a": {"type": "number", "description": "s"}, "b": {"type": "string", "enum": ["x", "y"]}}}

    def after(self, change: dict, name: str = "made", **whole) -> tuple[int, int]:
        def text(schema: dict) -> str:
            return json.dumps({"$schema": "schema", **schema}, indent=2) + "\n"

        old = schema_versions.with_version(text(self.RESULT), name, (2, 3))
        return schema_versions.version(name, old, text({**self.RESULT, "properties": change, **whole}))

    def test_sentences_change_none_more_is_minor_and_less_is_major(self):
        a, b = self.RESULT["properties"].values()
        self.assertEqual(self.after({"a": {"type": "number", "description": "t"}, "b": b}), (2, 3))
        self.assertEqual(self.after({"a": a, "b": b, "c": {"type": "number"}}, required=["a", "c"]), (2, 4))
        self.assertEqual(self.after({"a": a, "b": {**b, "enum": ["x", "y", "z"]}}), (2, 4))
        self.assertEqual(self.after({"a": a, "b": b}, required=["a", "b"]), (2, 4))
        self.assertEqual(self.after({"a": a}), (3, 0))
        self.assertEqual(self.after({"a": {"type": "string"}, "b": b}), (3, 0))
        self.assertEqual(self.after({"a": a, "b": {**b, "enum": ["x"]}}), (3, 0))
        self.assertEqual(self.after({"a": a, "b": b}, required=[]), (3, 0))

    def test_of_a_file_one_field_more_that_must_be_there_is_major(self):
        a, b = self.RESULT["properties"].values()
        more = {"a": a, "b": b, "c": {"type": "number"}}
        self.assertEqual(self.after(more, "made-file"), (2, 4))
        self.assertEqual(self.after(more, "made-file", required=["a", "c"]), (3, 0))
        self.assertEqual(self.after({"a": a, "b": b}, "made-file", required=[]), (2, 4))

    def test_every_schema_has_its_name_and_a_version(self):
        for file in (ROOT / "docs/schema").glob("*.json"):
            text = file.read_text()
            line = schema_versions.LINE.search(text)
            self.assertTrue(line and line[1] == file.stem, f"{file.name}: run tools/schema_versions.py")
            self.assertIn("$id", json.loads(text))
            self.assertEqual(schema_versions.with_version(text, file.stem, (int(line[2]), int(line[3]))), text)


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class FileSchemas(unittest.TestCase):
    def ask(self, *words: str) -> str:
        run = subprocess.run([os.environ["ORRERY_BINARY"], *words], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_they_are_what_the_command_declares(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", ROOT / "tools/make_schemas.py", os.environ["ORRERY_BINARY"], folder],
                           check=True)
            for file in pathlib.Path(folder).iterdir():
                kept = schema_versions.LINE.sub("", (ROOT / "docs/schema" / file.name).read_text())
                self.assertEqual(file.read_text(), kept, f"{file.name}: run tools/make_schemas.py BINARY docs/schema")

    def test_shipped_descriptions_fit(self):
        for name in MACHINES:
            shown = json.loads(self.ask("show", "machine", name, "--json"))
            self.assertEqual(schema_test.mistakes(shown, schema_test.schema("machine-file")), [], name)
        plan = json.loads(self.ask("show", "plan", "gpt3-175b-1024", "--json"))
        self.assertEqual(schema_test.mistakes(plan, schema_test.schema("plan-file")), [])

    def test_every_shipped_description_names_its_schema(self):
        for kind in ("machine", "plan"):
            for file in (ROOT / f"configs/{kind}s").glob("*.yaml"):
                path = file.read_text().split("# yaml-language-server: $schema=")[1].splitlines()[0]
                self.assertTrue((file.parent / path).resolve().samefile(ROOT / f"docs/schema/{kind}-file.json"), file)

    def test_a_study_of_every_kind_fits_and_other_fields_do_not(self):
        study = schema_test.schema("study-file")
        run = subprocess.run([os.environ["ORRERY_BINARY"], "sweep", "-", "--store", "none.db"], capture_output=True,
                             input="kind: no_such\nvary: {a: [1]}\n", text=True)
        known = set(re.findall(r"\w+", run.stderr.partition("one of ")[2].splitlines()[0]))
        kinds = {one["properties"]["kind"]["enum"][0] for one in study["oneOf"]}
        self.assertEqual(kinds - known, set(), run.stderr)
        for good in ({"model": "gpt2", "machine": "dgx-h100", "vary": {"plan.tp": [1, 2]}},
                     {"kind": "plan", "model": "gpt2", "machine": "dgx-h100", "only": {"tp": [1]}, "list": [{"devices": 8}]}):
            self.assertEqual(schema_test.mistakes(good, study), [])
        for wrong in ({"kind": "no_such"}, {"modle": "gpt2"}, {"kind": "collective", "model": "gpt2"}, {"random": {"seed": 1}}):
            self.assertNotEqual(schema_test.mistakes(wrong, study), [], wrong)

    def test_examples_name_their_schema_and_studies_fit_it(self):
        found = {"study": 0, "machine": 0, "engine": 0}
        for file in (ROOT / "examples").rglob("*.yaml"):
            head = re.search(r"^# yaml-language-server: \$schema=(\S*/(\w+)-file\.json)$", file.read_text(), re.M)
            if head:
                self.assertTrue((file.parent / head[1]).resolve().samefile(ROOT / f"docs/schema/{head[2]}-file.json"), file)
                found[head[2]] += 1
            else:  # a study of its own has one
                self.assertNotRegex(file.read_text(), r"(?m)^(vary|list|random|kind):", file)
        self.assertGreaterEqual(min(found.values()), 5, found)

    def test_show_prints_a_schema(self):
        self.assertEqual(self.ask("show", "schema", "plan-file"), (ROOT / "docs/schema/plan-file.json").read_text())


if __name__ == "__main__":
    unittest.main()
