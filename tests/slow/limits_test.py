#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Readers given files of several megabytes that say little: each answers within 20 times the file (64 MiB at least) and 2 GiB."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("ORRERY_BINARY")
SIZE = 4_000_000
LARGER = 10_000_000
MOST_OF_LARGER = 150_000_000
# A small program starts the command: the peak of a process is at least that of the one it was forked from.
MEASURE = """
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(run.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss)
"""
ALWAYS = 64 << 20
OWN = 40 << 20  # the program itself, and what an allocator rounds up


def repeated(unit, head="", tail="", between="", least=SIZE):
    """The unit, with its number in place of %d, until the text has so many bytes."""
    parts, size, number = [], 0, 0
    while size < least:
        parts.append(unit.replace("%d", str(number)))
        size += len(parts[-1])
        number += 1
    return head + between.join(parts) + tail


FIELDS_JSON = repeated('"k%d": {"a": %d, "b": [1, 2, 3], "c": "x"}', "{", "}", ",")
FIELDS_YAML = repeated("k%d: {a: %d, b: [1, 2, 3], c: x}\n")
STEP = ["simulate", "--model", "gpt2", "--machine", "dgx-h100"]
SERVE = ["serve", "--model", "llama-3.1-8b", "--machine", "dgx-h100"]
# As many rows of these as are read.
FEW = 600_000
ATTENTION = "1,1,1%d\n", "heads,head_dim,queries\n"
MOE = "1%d,8,8,1,8\n", "num_tokens,hidden_size,inter_size,topk,num_experts\n"
MESSAGES = "%d,0,1,1\n", "name,source,target,bytes\n"
# Name of the file, its text, the command.
READERS = [
    ("model.json", FIELDS_JSON, ["show", "model"]),
    ("plan.json", FIELDS_JSON, [*STEP, "--plan"]),
    ("plan.yaml", FIELDS_YAML, [*STEP, "--plan"]),
    ("machine.yaml", FIELDS_YAML, ["show", "machine"]),
    ("engine.yaml", FIELDS_YAML, [*SERVE, "--engine"]),
    ("faults.yaml", FIELDS_YAML, [*STEP, "--faults"]),
    ("study.yaml", FIELDS_YAML, ["sweep"]),
    ("ds.json", FIELDS_JSON, ["import", "deepspeed"]),
    ("nemo.yaml", FIELDS_YAML, ["import", "nemo"]),
    ("job.toml", repeated("[a%d]\nx = %d\n"), ["import", "torchtitan"]),
    ("run.sh", repeated("--flag-%d %d "), ["import", "megatron"]),
    ("serve.sh", repeated("--flag-%d %d ", "vllm serve m "), ["import", "vllm"]),
    ("booksim.cfg", repeated("k%d = %d;\n"), ["flit", "--booksim"]),
    ("deep.xml", repeated("<pci>", '<system version="1">'), ["show", "topology"]),
    ("simgrid.xml", repeated('<host id="h%d" speed="1Gf"/>\n', '<platform version="4.1"><zone id="w" routing="Full">',
                             "</zone></platform>"), ["show", "topology"]),
    ("simai.txt", repeated("1 1000 400Gbps 0.0005ms 0\n", "1001 8 1 0 100000 H100\n1000\n"), ["show", "topology"]),
    ("chakra.0.json", repeated('{"id": %d, "name": "n", "type": "COMP_NODE", "durationMicros": 1}\n', '{"version": "0.0.4"}\n'),
     ["simulate", "--machine", "dgx-h100", "--chakra"]),
    ("gemm.csv", repeated("128,128,%d,10\n", "m,n,k,latency_us\n"), ["calibrate", "gemm", "--machine", "dgx-h100"]),
    ("streams.csv", repeated("%d,1\n", "bytes,latency_us\n"), ["calibrate", "memory", "--machine", "dgx-h100"]),
    ("attention_times.csv", repeated("1,1,1%d,1\n", "heads,head_dim,queries,latency_us\n"), ["calibrate", "attention", "--machine", "dgx-h100"]),
    ("attention.csv", repeated(*ATTENTION), ["attention", "--machine", "dgx-h100", "--file"]),
    ("attention_few.csv", repeated(*ATTENTION, least=FEW), ["attention", "--machine", "dgx-h100", "--json", "--file"]),
    ("moe.csv", repeated(*MOE), ["moe", "--machine", "dgx-h100", "--json", "--file"]),
    ("moe_few.csv", repeated(*MOE, least=FEW), ["moe", "--machine", "dgx-h100", "--json", "--file"]),
    ("products.csv", repeated("1,1,1%d\n", "m,n,k\n"), ["gemm", "--machine", "dgx-h100", "--json", "--file"]),
    ("messages.csv", repeated(*MESSAGES), ["flit", "--topology", "mesh:2x2", "--messages"]),
    ("messages_few.csv", repeated(*MESSAGES, least=FEW), ["flit", "--topology", "mesh:2x2", "--json", "--messages"]),
    ("kineto.0.json", repeated('{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %d, "dur": 1, "args": {}}',
                               '{"traceEvents": [', "]}", ","), ["simulate", "--machine", "dgx-h100", "--chakra"]),
    ("flows.csv", repeated("0,%d,1\n", "source,target,bytes\n"), ["flow", "--topology", "fat_tree:k=8", "--flows"]),
    ("flows.cm", repeated("0->1 id %d start 0 size 1\n", "Nodes 128\nConnections 1\n"), ["flow", "--topology", "fat_tree:k=8", "--flows"]),
    ("packet.yaml", FIELDS_YAML, ["flow", "--topology", "fat_tree:k=8", "--network", "packet", "--packet"]),
    ("jobs.yaml", repeated("- {name: j%d, plan: p%d}\n", "jobs:\n"), ["simulate", "--machine", "dgx-h100", "--jobs"]),
    ("trace.csv", repeated("%d,10,10\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n"), [*SERVE, "--trace"]),
    ("trace.jsonl", repeated('{"timestamp": %d, "input_length": 10, "output_length": 0}\n'), [*SERVE, "--trace"]),
    ("kernels.csv", repeated("qkv_proj,%d,0\n", "layer,tokens,time_us\n"), [*SERVE, "--kernels"]),
    ("collectives.csv", repeated("all_reduce,8,%d,1\n", "collective,n_gpus,bytes,time_us\n"),
     ["calibrate", "collectives", "--machine", "dgx-h100"]),
    ("nccl.txt", repeated("  %d 1 float sum -1 1.0 1.0 1.0 0\n", "# Collective test starting: all_reduce_perf\n"),
     ["calibrate", "collectives", "--machine", "dgx-h100"]),
    ("serving.csv", repeated("%d,1,1,1,1\n", "arrival_s,input,output,ttft_s,e2e_s\n"),
     ["calibrate", "serving", "--machine", "dgx-h100", "--model", "llama-3.1-8b"]),
    ("graph.json", repeated('{"name": "n%d", "op": "matmul", "inputs": []}', '{"nodes": [', "]}", ","), ["spmd", "--graph"]),
    ("strategy.json", repeated('{"communications": [], "computations": [{"node": %d}]}', '{"stages": [', "]}", ","),
     ["spmd", "--graph", "Rmoe", "--profile", "64c8m", "--strategy"]),
    ("profile.yaml", FIELDS_YAML, ["spmd", "--graph", "Rmoe", "--profile"]),
    ("application.json", FIELDS_JSON, ["calculon", "--application"]),
    ("failures.yaml", repeated("c%d: {per_hour: 1}\n"), ["goodput", "--devices", "8", "--failures"]),
    ("stops.csv", repeated("%d,gpu\n", "hours,component\n"), ["goodput", "--devices", "8", "--log-length", "31 d", "--log"]),
    ("network.yaml", FIELDS_YAML, ["rank"]),
    ("run.json", FIELDS_JSON, ["compare"]),
    ("topology.yaml", FIELDS_YAML, ["show", "topology"]),
    ("messages.jsonl", repeated('{"type": "message", "source": 0, "target": 1, "bytes": 1, "begin_s": %d, "end_s": %d}\n'),
     ["diagnose"]),
]


def measured(command):
    """Status, bytes at its peak, and what it said of its mistakes."""
    run = subprocess.run([sys.executable, "-c", MEASURE, BINARY, *command], capture_output=True, text=True, check=False,
                         env={**os.environ, "ORRERY_CONFIGS": str(ROOT / "configs")})
    status, kilobytes = map(int, run.stdout.split())
    return status, kilobytes * 1024, run.stderr


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
class Limits(unittest.TestCase):
    def test_json_of_ten_megabytes_takes_a_hundred_and_fifty(self):
        written = '  "request_%d": {\n    "arrival_seconds": %d.25,\n    "input_tokens": 1024,\n    "stages": [\n      1,\n      2\n    ]\n  }'
        for name, text in (("dense", repeated('"k%d": {"a": %d, "b": [1, 2, 3], "c": "x"}', "{", "}", ",", LARGER)),
                           ("written", repeated(written, "{\n", "\n}", ",\n", LARGER)), ("numbers", repeated("7", "[", "]", ",", LARGER // 2))):
            with tempfile.TemporaryDirectory() as folder, self.subTest(name):
                file = pathlib.Path(folder) / "model.json"
                file.write_text(text)
                status, peak, said = measured(["show", "model", str(file)])
                self.assertEqual(status, 2, said[:200])
                self.assertLessEqual(peak, MOST_OF_LARGER)

    def test_readers_stay_within_twenty_times_their_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, command in READERS:
                file = pathlib.Path(folder) / name
                file.write_text(text)
                with self.subTest(name):
                    status, peak, said = measured([*command, str(file).removesuffix(".0.json")])
                    self.assertIn(status, (0, 2), said[:200])
                    self.assertTrue(status == 0 or said)
                    self.assertLessEqual(peak, max(20 * len(text), ALWAYS) + OWN)


if __name__ == "__main__":
    unittest.main()
