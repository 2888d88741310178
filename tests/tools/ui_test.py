# SPDX-License-Identifier: Apache-2.0
"""`orrery ui`: its page and questions, and what it refuses."""
import http.client
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import unittest

TOKEN = "a-token_7"
STUDY = {"kind": "simulate", "model": "gpt2", "machine": "dgx-a100-80g", "devices": 8, "plan": {"tp": 2, "global_batch": 64}}


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([os.environ["ORRERY_BINARY"], "ui", "--port", "0", "--token", TOKEN],
                                       stderr=subprocess.PIPE, text=True)
        cls.address = cls.process.stderr.readline()
        cls.port = int(re.match(r"http://127\.0\.0\.1:(\d+)/\?token=" + TOKEN, cls.address)[1])

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait()
        cls.process.stderr.close()

    def ask(self, method, path, body=None, token=True, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        own = {"Cookie": f"orrery_{self.port}={TOKEN}"} if token else {}
        if body is not None:
            own["Content-Type"] = "application/json"
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, body, {**own, **{name.replace("_", "-"): value for name, value in headers.items()}})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply, text

    def status(self, *words, **headers):
        return self.ask(*words, **headers)[0].status

    def figures(self, study):
        reply, text = self.ask("POST", "/api/run", study)
        self.assertEqual(reply.status, 200, text)
        return json.loads(text)

    def test_the_page_needs_the_token_and_sets_a_cookie(self):
        reply, text = self.ask("GET", f"/?token={TOKEN}", token=False)
        self.assertEqual(reply.status, 200)
        cookie = reply.getheader("Set-Cookie")
        for part in (f"orrery_{self.port}={TOKEN}", "HttpOnly", "SameSite=Strict"):
            self.assertIn(part, cookie)
        self.assertIn("default-src 'none'", reply.getheader("Content-Security-Policy"))
        self.assertIn("frame-ancestors 'none'", reply.getheader("Content-Security-Policy"))
        for outside in (b"http://", b"https://", b"<script>", b"style="):
            self.assertNotIn(outside, text)
        self.assertEqual(self.status("GET", "/page.js"), 200)
        self.assertEqual(self.status("GET", "/", token=False, Authorization=f"Bearer {TOKEN}"), 200)

    def test_who_does_not_show_the_token_or_comes_from_elsewhere_gets_nothing(self):
        for path in ("/", "/page.js", "/api/choices", "/nothing"):
            self.assertEqual(self.status("GET", path, token=False), 401)
        for token in ("", "a-token_", "a-token_8", TOKEN + "x", "%00"):
            self.assertEqual(self.status("GET", f"/?token={token}", token=False), 401)
        self.assertEqual(self.status("POST", "/api/run", STUDY, token=False), 401)
        for host in ("evil.example", f"evil.example:{self.port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1:{self.port}.evil"):
            self.assertEqual(self.status("GET", "/", Host=host), 403)
        self.assertEqual(self.status("GET", "/", Host=f"localhost:{self.port}"), 200)
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{self.port}", "http://127.0.0.1:1"):
            self.assertEqual(self.status("POST", "/api/run", STUDY, Origin=origin), 403)
        self.assertEqual(self.status("POST", "/api/run", STUDY, Origin=f"http://127.0.0.1:{self.port}"), 200)

    def test_no_path_leads_out_of_the_page(self):
        for path in ("/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/page.js/",
                     "/page.js%00", "/./page.js", "/api", "/api/run/..", "/x" * 2000, "/?" + "a" * 3000):
            self.assertIn(self.status("GET", path), (400, 404, 414), path)
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"):
            self.assertIn(self.status(method, "/nothing"), (400, 404), method)

    def test_a_study_has_the_figures_of_the_command(self):
        figures = self.figures(STUDY)["figures"]
        run = subprocess.run([os.environ["ORRERY_BINARY"], "simulate", "--model", "gpt2", "--machine", "dgx-a100-80g",
                              "--devices", "8", "--tp", "2", "--global-batch", "64", "--json"], capture_output=True)
        self.assertEqual(figures["step_time_s"], json.loads(run.stdout)["step_time_s"])
        slower = self.figures({**STUDY, "vary": {"machine.device.memory.0.bandwidth": ["1 TB/s"]}})["figures"]
        self.assertGreater(slower["step_time_s"], figures["step_time_s"])
        wrong = self.figures({**STUDY, "plan": {"tp": 5}})
        self.assertIn("tp", wrong["error"])
        served = self.figures({"kind": "serve", "model": "llama-3.1-8b", "machine": "dgx-h100",
                               "requests": {"count": 10, "rate": 4, "input": 100, "output": 10}})
        self.assertEqual(served["figures"].get("completed"), 10, served)

    def test_what_is_shared_reads_back_and_names_no_file(self):
        text = "kind: simulate\nmodel: gpt2\nmachine: dgx-a100-80g\nplan:\n  tp: 2\n"
        reply, answer = self.ask("POST", "/api/read", text)
        self.assertEqual(json.loads(answer)["plan"], {"tp": 2})
        for study in ({"model": "/etc/passwd"}, {"model": "../gpt2"}, {"model": "secret.json"}, {"machine": "-"},
                      {"plan": {"strategy": "plan.json"}}, {"vary": {"model": ["/etc/passwd"]}},
                      {"vary": {"plan.strategy": ["x"]}}, {"plan": {"order": "~/x"}}, {"kind": "astra"},
                      {"kind": "simulate", "model": {"name": "1/../../etc"}}):
            reply, answer = self.ask("POST", "/api/run", {**STUDY, **study})
            self.assertEqual(reply.status, 422, study)
            self.assertNotIn(b"root:", answer)
        reply, answer = self.ask("POST", "/api/describe", {"kind": "machine", "name": "../machines/dgx-h100"})
        self.assertEqual(reply.status, 422)

    def test_bodies_of_another_type_or_size_are_refused(self):
        self.assertEqual(self.status("POST", "/api/run", "{}", Content_Type="text/plain"), 415)
        self.assertEqual(self.status("POST", "/api/run", "x" * 300_000), 413)
        for body in ("", "{", "[" * 50_000, "\x00", "null", "[]", "a: &x [*x]", '{"kind": "simulate"}', '{"kind": []}'):
            self.assertEqual(self.status("POST", "/api/run", body), 422, body[:20])
            self.assertEqual(self.status("POST", "/api/describe", body), 422, body[:20])

    def test_random_bytes_do_not_stop_it(self):
        draw = random.Random(1)
        whole = f"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: 5\r\n\r\nhello".encode()
        for _ in range(60):
            raw = bytearray(whole)
            for _ in range(draw.randrange(1, 12)):
                raw[draw.randrange(len(raw))] = draw.randrange(256)
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(bytes(raw[:draw.randrange(1, len(raw) + 1)]))
                connection.shutdown(socket.SHUT_WR)
        self.assertEqual(self.status("GET", "/page.css"), 200)
        self.assertIsNone(self.process.poll())


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Flags(unittest.TestCase):
    def test_ports_and_tokens_that_cannot_be(self):
        run = subprocess.run([os.environ["ORRERY_BINARY"], "ui", "--port", "70000", "--token", "a b"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--port", run.stderr)
        self.assertIn("--token", run.stderr)


class Sources(unittest.TestCase):
    def test_the_page_asks_nobody_else(self):
        for path in (pathlib.Path(__file__).resolve().parents[2] / "src/ui/runtime").iterdir():
            self.assertNotRegex(path.read_text().replace("http://127.0.0.1", ""), r"https?://|innerHTML|eval\(")


if __name__ == "__main__":
    unittest.main()
