# SPDX-License-Identifier: Apache-2.0
"""`orrery mcp` as an agent's client sees it, and as a hostile one does."""
import json
import os
import subprocess
import unittest

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
STEP = {"model": "gpt2", "machine": "dgx-a100-80g", "tp": 2, "global_batch": 8}


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@unittest.skipUnless(os.environ.get("ORRERY_BINARY"), "run by ctest, which names the binary")
class Protocol(unittest.TestCase):
    def talk(self, *messages) -> list:
        """Answers to messages; a str or bytes is a line as it stands."""
        lines = [message if isinstance(message, bytes) else
                 (message if isinstance(message, str) else json.dumps(message)).encode() for message in messages]
        run = subprocess.run([os.environ["ORRERY_BINARY"], "mcp"], input=b"\n".join(lines) + b"\n",
                             capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def code(self, message) -> int:
        return message["error"]["code"]

    def test_a_client_with_a_handshake(self):
        hello = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answers = self.talk(
            request(1, "initialize", protocolVersion="2025-06-18", **hello),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request("two", "ping"), request(3, "tools/list"),
            request(4, "tools/call", name="simulate", arguments=STEP),
            request(5, "tools/call", name="show", arguments={"kind": "model", "name": "gpt2"}),
            request(6, "initialize", protocolVersion="2026-07-28", **hello),
            request(7, "initialize", protocolVersion="1999-01-01", **hello))
        self.assertEqual([answer["id"] for answer in answers], [1, "two", 3, 4, 5, 6, 7])
        self.assertEqual([answers[i]["result"]["protocolVersion"] for i in (0, 5, 6)],
                         ["2025-06-18", "2026-07-28", "2025-06-18"])
        self.assertEqual(answers[0]["result"]["serverInfo"]["name"], "orrery")
        self.assertEqual(answers[1]["result"], {})
        tools = {tool["name"]: tool for tool in answers[2]["result"]["tools"]}
        self.assertEqual(set(tools), {"simulate", "plan", "serve", "explain", "show"})
        schema = tools["simulate"]["inputSchema"]
        self.assertEqual(schema["properties"]["tp"]["type"], "integer")
        self.assertIn("selective", schema["properties"]["recompute"]["enum"])
        self.assertFalse(schema["additionalProperties"])
        self.assertNotIn("trace", schema["properties"])
        self.assertEqual(tools["show"]["inputSchema"]["required"], ["kind"])
        step = answers[3]["result"]
        self.assertFalse(step["isError"])
        self.assertGreater(step["structuredContent"]["step_time_s"], 0)
        self.assertEqual(json.loads(step["content"][0]["text"]), step["structuredContent"])
        self.assertEqual(answers[4]["result"]["structuredContent"]["layers"], 12)

    def test_a_client_without_a_handshake(self):
        answers = self.talk(
            request(1, "server/discover", _meta=META), request(2, "tools/list", _meta=META),
            request(3, "tools/call", _meta=META, name="explain", arguments=STEP), request(4, "ping", _meta=META),
            request(5, "tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}),
            request(6, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}),
            request(7, "server/discover"))
        self.assertEqual(answers[0]["result"]["supportedVersions"], ["2026-07-28"])
        for answer in answers[:3]:
            self.assertEqual(answer["result"]["resultType"], "complete")
            self.assertEqual(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "orrery")
        self.assertEqual(answers[1]["result"]["cacheScope"], "public")
        self.assertEqual([self.code(answer) for answer in answers[3:]], [-32601, -32022, -32602, -32602])
        self.assertEqual(answers[4]["error"]["data"], {"supported": ["2026-07-28"], "requested": "2099-01-01"})

    def test_mistakes_of_a_tool_are_for_the_agent_to_read(self):
        def call(tool, **arguments):
            return request(1, "tools/call", name=tool, arguments=arguments)
        answers = self.talk(
            call("simulate", **{**STEP, "model": "gtp2"}), call("simulate", **STEP, globl_batch=8),
            call("simulate", **STEP, trace="/tmp/written"), call("simulate", **{**STEP, "model": "-"}),
            call("simulate", **STEP, csv=True), call("show", kind="--help", name="gpt2"),
            call("simulate", **{**STEP, "tp": {"a": 1}}))
        for answer, expected in zip(answers, ("did you mean", "unknown option --globl-batch", "trace", "a name or a file",
                                              "csv", "dash", "found object")):
            self.assertTrue(answer["result"]["isError"])
            self.assertIn(expected, answer["result"]["content"][0]["text"])
        self.assertFalse(os.path.exists("/tmp/written"))

    def test_hostile_lines_are_answered_and_the_next_is_served(self):
        deep = "[" * 100_000 + "]" * 100_000
        nested = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + '{"a":' * 5000 + "1" + "}" * 5001
        hostile = ["{", b"\xff\xfe\x00", "x" * 2_000_000, deep, nested, "[]", "null", "17", '"text"', "{}",
                   '{"jsonrpc": "1.0", "id": 1, "method": "ping"}', '{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
                   '{"jsonrpc": "2.0", "id": 1, "method": 5}', '[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
                   request(1, "no/such"), {**request(1, "ping"), "params": []}, request(1, "tools/call"),
                   request(1, "tools/call", name="rm"), request(1, "tools/call", name="simulate", arguments=[1]),
                   request(1, "initialize"), request(1, "tools/list", _meta=3), request(1, "tools/call", name=7)]
        answers = self.talk(*hostile, "", {"jsonrpc": "2.0", "method": "no/such/notification"}, request(99, "ping"))
        self.assertEqual(answers[-1], {"jsonrpc": "2.0", "id": 99, "result": {}})
        codes = [self.code(answer) for answer in answers[:-1]]
        self.assertEqual(codes, 5 * [-32700] + 9 * [-32600] + [-32601] + 7 * [-32602])


if __name__ == "__main__":
    unittest.main()
