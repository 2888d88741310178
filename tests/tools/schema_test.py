# SPDX-License-Identifier: Apache-2.0
"""docs/schema/*.json describe what --json and --csv print: every field, and no other.

Here are schemas that are kept by hand. Results that declare their fields (src/report/schemas.cc) write theirs, which tests/web holds
them to and tests/report their JSON.
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}
KNOWN = {"$schema", "$id", "$comment", "title", "description", "type", "properties", "required",
         "additionalProperties", "items", "oneOf", "enum", "$defs", "$ref"}


def is_type(value, name: str) -> bool:
    """JSON has one number type; true is none of it."""
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def mistakes(value, schema: dict, at: str = "$", whole: dict | None = None) -> list[str]:
    """Of the part of JSON Schema that the files use; `whole` has the definitions that `schema` refers to."""
    whole = whole or schema
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    unknown = schema.keys() - KNOWN
    assert not unknown, f"{at}: the test does not know {unknown}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        return [f"{at}: found {type(value).__name__}, expected {types}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: found {value}, expected one of {schema['enum']}")
    if isinstance(value, dict):
        found += [f"{at}: lacks {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            found += [f"{at}.{key}: undocumented"] if inner is False else mistakes(item, inner, f"{at}.{key}", whole)
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += mistakes(item, schema.get("items", {}), f"{at}[{i}]", whole)
    choices = schema.get("oneOf", [])
    if choices and sum(not mistakes(value, choice, at, whole) for choice in choices) != 1:
        found.append(f"{at}: is not exactly one of the alternatives")
    return found


def schema(name: str) -> dict:
    return json.loads((ROOT / f"docs/schema/{name}.json").read_text())


class Validator(unittest.TestCase):
    def test_a_wrong_type_a_missing_field_and_an_unknown_one_are_mistakes(self):
        self.assertEqual(len(mistakes({"rows": 1, "more": 2}, schema("collective"))), 9)
        self.assertEqual(mistakes(True, {"type": "number"}), ["$: found bool, expected ['number']"])


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Outputs(unittest.TestCase):
    STEP = ["--model", "gpt2", "--machine", "dgx-a100-80g", "--tp", "2", "--global-batch", "8"]

    def run_orrery(self, *words: str) -> str:
        run = subprocess.run([os.environ["ORRERY_BINARY"], *words], capture_output=True, text=True)
        # An export that loses something says what and ends with 1.
        expected = 1 if words[0] == "export" and "not stated: " in run.stderr else 0
        self.assertEqual(run.returncode, expected, run.stderr)
        return run.stdout

    def check(self, name: str, *words: str) -> None:
        with self.subTest(words=words):
            self.assertEqual(mistakes(json.loads(self.run_orrery(*words, "--json")), schema(name)), [])

    def test_calculon(self):
        folder = ROOT / "examples/calculon"
        files = ["--application", str(folder / "megatron-1T.json"), "--system", str(folder / "a100_80g.json")]
        self.check("calculon", "calculon", *files, "--execution", str(folder / "megatron-1T_3072.json"))

    def test_composition(self):
        self.check("compose", "compose", "--model", "llama-2-7b", "--machine", "sn40l", "--devices", "8", "--batches", "20")

    def test_architectures(self):
        folder = str(ROOT / "examples/rank/hand")
        self.check("rank", "rank", folder, "--samples", "4", "--seeds", "2", "--machine", "dgx-h100")
        self.check("rank", "rank", folder, "--samples", "4", "--seeds", "1", "--train", "1")

    def test_mpi_calls(self):
        corpus = ROOT / "examples/mpi_calls/corpus"
        with tempfile.TemporaryDirectory() as folder:
            truth = pathlib.Path(folder, "truth.jsonl")
            truth.write_text(self.run_orrery("mpi", "strip", str(corpus)))
            for line in truth.read_text().splitlines():
                self.assertEqual(mistakes(json.loads(line), schema("mpi-record")), [])
            self.check("mpi-score", "mpi", "score", str(truth), str(truth), "--calls", "8")
            self.check("mpi-train", "mpi", "train", str(corpus), "--out", f"{folder}/model.json")

    def test_home(self):
        self.check("home", "home", "--model", "llama-2-7b", "--devices", "4")

    def test_tiles(self):
        self.check("tiles", "tiles", "--ranks", "2", "--rows", "16", "--columns", "8", "--inner", "8", "--repeat", "1")

    def test_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "nvidia-smi.csv").write_text("NVIDIA L40S, 46068, 350.00\n" * 8)
            self.check("machine", "machine", "detect", "--from", folder)

    def test_patches(self):
        self.check("patches", "patches", "--devices", "4")

    def test_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            faults = pathlib.Path(folder, "faults.yaml")
            faults.write_text("faults: [{kind: link, links: [leaf0--spine0], bandwidth_share: 0, at: 0 s}]\n")
            self.check("flow", "flow", "--topology", "leaf_spine:leaves=2,spines=2,hosts=2", "--traffic", "shift",
                       "--faults", str(faults))

    def test_traces(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_orrery("export", "chakra", *self.STEP, "--output", f"{folder}/step")
            traces = ["--chakra", f"{folder}/step", "--machine", "dgx-a100-80g"]
            groups = pathlib.Path(f"{folder}/step.groups.json")
            traces += ["--groups", str(groups)] if groups.exists() else []
            self.check("simulate-chakra", "simulate", *traces)
            self.check("simulate-chakra", "simulate", *traces, "--memory")

    def test_collectives_and_kernels(self):
        self.check("collective", "collective", "all_reduce", "--machine", "dgx-h100", "--devices", "16")
        shapes = {"gemm": {"m": 64, "n": 64, "k": 64}, "attention": {"heads": 8, "head-dim": 64, "queries": 128},
                  "moe": {"num-tokens": 64, "hidden-size": 64, "inter-size": 64, "topk": 2, "num-experts": 8}}
        for name, shape in shapes.items():
            machine = ["--machine", "dgx-h100"]
            self.check(name, name, *machine, *[word for key, value in shape.items() for word in (f"--{key}", str(value))])
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as rows:
                rows.write(",".join(key.replace("-", "_") for key in shape) + "\n" +
                           ",".join(map(str, shape.values())) + "\n")
                rows.flush()
                self.check(name, name, *machine, "--file", rows.name)

    def test_systolic_arrays_and_fusion(self):
        array = ["--device", "systolic:16x16:best", "--m", "64", "--n", "64", "--k", "64"]
        self.check("gemm", "gemm", *array)
        self.check("gemm", "gemm", "--machine", "pim-gpt", *array[2:])
        with tempfile.TemporaryDirectory() as folder:
            configuration = pathlib.Path(folder, "a.cfg")
            configuration.write_text("[architecture_presets]\nArrayHeight: 16\nArrayWidth: 16\nIfmapSramSzkB: 64\n"
                                     "FilterSramSzkB: 64\nOfmapSramSzkB: 64\nDataflow: ws\n"
                                     "[run_presets]\nInterfaceBandwidth: CALC\n")
            topology = pathlib.Path(folder, "t.csv")
            topology.write_text("Layer,M,N,K\na,64,64,64\n")
            self.check("gemm", "gemm", "--scale-sim", str(configuration), str(topology))
        self.check("fuse", "fuse", "--machine", "dgx-h100", "--pair", "all")
        self.check("fuse", "fuse", "--machine", "dgx-h100", "--mesh", "tp=4", "--from", "sums", "--to", "0")
        self.check("fuse", "fuse", "--model", "gpt2", "--machine", "dgx-a100-80g", "--tp", "2", "--pp", "2",
                   "--global-batch", "8", "--sequence-parallel", "false")

    def test_rows_of_a_store(self):
        with tempfile.TemporaryDirectory() as folder:
            study = pathlib.Path(folder, "study.yaml")
            study.write_text("model: gpt2\nmachine: dgx-a100-80g\nvary: {plan.tp: [2, 8]}\n")
            self.check("rows", "sweep", str(study), "--store", f"{folder}/study.db")
            self.check("rows", "query", f"{folder}/study.db")

    def test_plans(self):
        search = ["plan", "--model", "gpt2", "--machine", "dgx-a100-80g", "--batch", "16"]
        self.check("plan", *search, "--devices", "4")
        self.check("plan", *search, "--devices", "4", "--max-memory", "3GiB")
        self.check("plan", *search, "--devices", "2", "--tp", "2", "--fix", "overlap_tensor=tracked_mca")
        self.check("reinforce", "reinforce", "--model", "gpt2", "--machine", "dgx-h100", "--devices", "2", "--answers", "8",
                   "--input", "100", "--output", "20")
        self.check("plan-layers", "plan", "--layer-costs", str(ROOT / "examples/layer_costs/costs.yaml"),
                   "--max-memory", "40GB")

    def test_spmd(self):
        self.check("spmd", "spmd", "--graph", "Vmoe", "--layers", "2", "--profile", "64c8m")
        self.check("spmd", "spmd", "--graph", "Rmoe", "--layers", "2", "--cost", "orrery", "--machine", "dgx-h100",
                   "--max-memory", "40GiB")
        self.check("spmd", "spmd", "--graph", "Rmoe", "--layers", "2", "--cost", "mixed", "--profile", "64c8m",
                   "--rates", "12TFLOP/s*4,4TFLOP/s*4")

    def test_astra(self):
        folder = ROOT / "examples/astra_quickstart"
        files = ["astra", *(f"--{name}-configuration={folder / file}" for name, file in
                            {"workload": "trace", "system": "system.json", "network": "network.yml",
                             "remote-memory": "memory.json"}.items())]
        self.check("astra", *files)
        self.check("astra", *files, "--statistics", "--no-fold")
        self.check("astra-native", *files, "--native")

    def test_validation(self):
        self.check("validate", "validate", "--table", "korthikanti2022_table5")

    def test_calibration(self):
        with tempfile.TemporaryDirectory() as folder:
            kernels = pathlib.Path(folder, "gemm.csv")
            kernels.write_text("m,n,k,latency_us\n" + "".join(
                f"{m},{n},4096,{m * n * 4096 * 2 / 6e8 + 5:.1f}\n"
                for m in (512, 1024, 4096, 8192) for n in (1024, 8192)))
            self.check("calibrate-gemm", "calibrate", "gemm", str(kernels), "--machine", "dgx-h100")
            attention = pathlib.Path(folder) / "attention.csv"
            attention.write_text("library,heads,head_dim,queries,cache,latency_us\ncudnn,16,128,4096,false,300\n")
            self.check("calibrate-kernels", "calibrate", "attention", str(attention), "--machine", "dgx-h100")
            sizes = pathlib.Path(folder, "collectives.csv")
            sizes.write_text("collective,n_gpus,bytes,time_us\n" + "".join(
                f"all_reduce,8,{4 ** i},{15 + 4 ** i / 2.5e5:.1f}\n" for i in range(6, 15)))
            self.check("calibrate-collectives", "calibrate", "collectives", str(sizes), "--machine", "dgx-h100")

    def test_other_programs_words(self):
        self.check("import", "import", "megatron", str(ROOT / "examples/import_megatron/launch.sh"))
        with tempfile.TemporaryDirectory() as folder:
            line = pathlib.Path(folder, "line")
            line.write_text("vllm serve meta-llama/Llama-3.1-8B -tp 2\n")
            self.check("import", "import", "vllm", str(line))
            self.check("export", "export", "chakra", *self.STEP, "--output", f"{folder}/step")
        self.check("export", "export", "megatron", "--plan", "llama-3-8b-8", "--model", "llama-3-8b")
        self.check("export", "export", "vllm", "--engine", "sglang", "--model", "llama-3.1-8b")

    def test_names_and_what_they_stand_for(self):
        for kind in ("machines", "models", "plans", "engines", "spmd", "networks", "passes", "tables", "quirks"):
            self.check("list", "list", kind)
        self.check("show-model", "show", "model", "deepseek-v3")
        self.check("show-topology", "show", "topology", "fat_tree:k=4")
        for kind, name in (("machine", "dgx-h100"), ("plan", "llama-3-8b-8"), ("engine", "vllm")):
            self.check("show", "show", kind, name)

    def test_the_columns_of_csv_are_fields_of_the_json(self):
        def known(fields: dict, column: str) -> bool:
            name, _, rest = column.partition(".")
            field = fields.get(name)
            if not field or not rest:
                return field is not None
            field = field.get("items", field)
            return known(field["properties"], rest) if "properties" in field else True

        columns = next(csv.reader(io.StringIO(self.run_orrery("simulate", *self.STEP, "--csv"))))
        fields = schema("simulate")["properties"]
        self.assertEqual([c for c in columns if not known(fields, c)], ["memory_stage", "memory_moment"])


if __name__ == "__main__":
    unittest.main()
