# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/serving-howto.md run, and answer their questions; the endpoint over HTTP, also with curl."""
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY")
SMALL = ["serve", "--model", "meta-llama/Llama-3.2-1B-Instruct", "--machine", "dgx-h100"]


def commands() -> list[list[str]]:
    page = (ROOT / "docs/serving-howto.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
    return [shlex.split(block.replace("\\\n", " "))[1:] for block in blocks]


def run(words: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *words], capture_output=True, text=True)


class Endpoint:
    """`orrery serve --listen` on a free port; stop() returns its report."""

    def __init__(self, *words: str):
        self.process = subprocess.Popen([BINARY, *SMALL, "--listen", "127.0.0.1:0", "--json", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.address = re.search(r"http://([\d.]+:\d+)", line).group(1)

    def stop(self) -> dict:
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=20)
        return json.loads(out)

    def ask(self, connection: http.client.HTTPConnection, body: dict, **headers: str) -> dict:
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        return json.loads(response.read())


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
class Howto(unittest.TestCase):
    def test_each_question_has_a_command_that_answers_it(self):
        words = commands()
        self.assertEqual(len(words), 10)
        answers = ["Median TTFT", "it fits 2 in bf16, 1 in fp8", "Median TTFT", "Largest rate", "Fewest GPUs",
                   "tok/s/GPU", "cost_per_million_tokens", "Median TTFT"]
        for number, answer in enumerate(answers):
            with self.subTest(words=words[number]):
                done = run(words[number])
                self.assertEqual(done.returncode, 2 if number == 1 else 0, done.stderr)
                self.assertIn(answer, done.stderr if number == 1 else done.stdout)

    def test_a_live_engine_is_observed_and_its_host_fitted(self):
        endpoint = Endpoint("--host-front-end", "5 ms")
        with tempfile.TemporaryDirectory() as folder:
            seen = pathlib.Path(folder, "seen.csv")
            done = run([*SMALL, "--rate", "40", "--requests", "20", "--input", "100", "--output", "10", "--observe",
                        "http://" + endpoint.address])
            self.assertEqual(done.returncode, 0, done.stderr)
            seen.write_text(done.stdout)
            self.assertEqual(len(done.stdout.splitlines()), 21)
            engine = pathlib.Path(folder, "engine.yaml")
            fit = run(["calibrate", "serving", str(seen), "--machine", "dgx-h100", "--model", "llama-3.2-1b", "-o",
                       str(engine), "--json"])
            self.assertEqual(fit.returncode, 0, fit.stderr)
            fitted = json.loads(fit.stdout)
            self.assertLessEqual(fitted["ttft_after"], fitted["ttft_before"])
            self.assertIn("front_end", engine.read_text())
        self.assertEqual(endpoint.stop()["requests"], 20)


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
class Clients(unittest.TestCase):
    def test_registered_clients_at_max_have_the_offline_runs_percentiles(self):
        # Four clients, each with its next request when the last one is answered, as --max-concurrency 4.
        endpoint = Endpoint("--speed", "max", "--clients", "4")
        times = []

        def client(number: int) -> None:
            connection = http.client.HTTPConnection(endpoint.address)
            at = 0.0
            for turn in range(10):
                tokens = [10_000 * number + 1000 * turn + i for i in range(300)]
                answer = endpoint.ask(connection, {"prompt": tokens, "max_tokens": 20},
                                      **{"x-orrery-arrival": f"{at:.12f}"})["orrery"]
                at = answer["finish"]
                times.append((answer["first_token"] - answer["arrival"], answer["finish"] - answer["first_token"]))
            connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report = endpoint.stop()
        offline = json.loads(run([*SMALL, "--arrival", "infinite", "--max-concurrency", "4", "--requests", "40",
                                  "--input", "300", "--output", "20", "--json"]).stdout)
        ttft = sorted(first for first, _ in times)
        self.assertEqual(len(ttft), 40)
        mean = sum(ttft) / len(ttft)
        self.assertAlmostEqual(mean / offline["ttft_s"]["mean"], 1, delta=0.01)
        for name in ("ttft_s", "tpot_s"):
            self.assertAlmostEqual(report[name]["p99"] / offline[name]["p99"], 1, delta=0.01)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl_streams(self):
        endpoint = Endpoint("--speed", "100", "--served-model-name", "mine")
        body = {"model": "mine", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3, "stream": True}
        done = subprocess.run(["curl", "-sN", f"http://{endpoint.address}/v1/chat/completions", "-H",
                               "Content-Type: application/json", "-d", json.dumps(body)], capture_output=True, text=True)
        events = [line for line in done.stdout.splitlines() if line.startswith("data: ")]
        self.assertEqual(len(events), 4)  # three tokens and the end
        self.assertEqual(events[-1], "data: [DONE]")
        self.assertEqual(json.loads(events[2][6:])["choices"][0]["finish_reason"], "length")
        models = subprocess.run(["curl", "-s", f"http://{endpoint.address}/v1/models"], capture_output=True, text=True)
        self.assertEqual(json.loads(models.stdout)["data"][0]["id"], "mine")
        self.assertEqual(endpoint.stop()["requests"], 1)


if __name__ == "__main__":
    unittest.main()
