#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTML reports as headless Chromium shows them: elements, no console error, no request, keys. Skipped without chromium."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
TAB, RIGHT, DOWN, ENTER = "\ue004", "\ue014", "\ue015", "\ue007"  # as the WebDriver protocol names keys
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("ORRERY_BINARY")
STEP = ["--model", "gpt2", "--machine", "dgx-a100-80g", "--tp", "2", "--pp", "2", "--global-batch", "8"]


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
@unittest.skipUnless(CHROMIUM, "no chromium here")
class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def page(self, *words: str) -> pathlib.Path:
        file = self.folder / "page.html"
        run = subprocess.run([BINARY, *words, "--html", str(file)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLessEqual(file.stat().st_size, 1_000_000)
        return file

    def shown(self, file: pathlib.Path) -> str:
        """The elements once the script has run; a console error and a request but for the file are failures."""
        log = self.folder / "net.json"
        run = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
             f"--user-data-dir={self.folder}/profile", "--disable-background-networking", "--disable-component-update",
             f"--log-net-log={log}", "--enable-logging=stderr", "--dump-dom", file.as_uri()],
            capture_output=True, text=True, timeout=300)
        console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [])
        asked = set(re.findall(r'"url":"((?:https?|wss?|data):[^"]*)"', log.read_text()))
        self.assertEqual([url for url in asked if not re.search("google|gvt1", url)], [])  # the browser's own services
        self.assertIn('data-ready="yes"', run.stdout)
        return run.stdout

    def titles(self, dom: str) -> list[str]:
        return [html.unescape(title) for title in re.findall(r"<h2[^>]*>(.*?)</h2>", dom)]

    def test_a_step_has_its_figures_with_formula_and_table(self):
        dom = self.shown(self.page("simulate", *STEP))
        self.assertIn("gpt2 on 4 × dgx-a100-80g", dom)
        titles = " ".join(self.titles(dom))
        for title in ("Where the time goes", "Timeline", "Memory over the step", "Memory at the fullest", "Every field"):
            self.assertIn(title, titles)
        self.assertRegex(dom, r'<canvas class="timeline" tabindex="0" role="application" aria-label="Timeline of \d+ lanes')
        self.assertIn("docs/models/simulate.md", dom)
        self.assertIn("model FLOPs utilisation, attention as the whole square, a share", dom)  # the schema's sentence
        self.assertRegex(dom, r"Nearest published runs: [^<]*, error -?[\d.]+ %")
        self.assertRegex(dom, r"vtrain_a100_single|training_llm_foundry|megatron_sc21_table1")
        figures = re.findall(r'<section class="figure" aria-labelledby', dom)
        self.assertEqual(len(re.findall(r'<details class="formula"', dom)) >= len(figures), True)

    def test_a_name_never_becomes_markup(self):
        model = json.loads((ROOT / "configs/models/gpt2.json").read_text())
        file = self.folder / "<img src=x onerror=document.title=1>.json"
        file.write_text(json.dumps(model))
        dom = self.shown(self.page("simulate", "--model", str(file), *STEP[2:]))
        self.assertNotIn("<img", dom)
        self.assertIn("&lt;img src=x onerror", dom)

    def test_every_command_has_a_page(self):
        study = self.folder / "study.yaml"
        study.write_text("model: gpt2\nmachine: dgx-a100-80g\nvary: {plan.tp: [2, 4]}\n")
        astra = ROOT / "examples/astra_quickstart"
        commands = {
            "explain": (STEP, "critical path"),
            "plan": (["--model", "gpt2", "--machine", "dgx-a100-80g", "--batch", "16", "--devices", "4"], "Plans: step time"),
            "serve": (["--model", "llama-3.1-8b", "--machine", "dgx-h100", "--requests", "20", "--rate", "2"],
                      "Latency over load Latencies TTFT: histogram of 20"),
            "flow": (["--topology", "leaf_spine:leaves=2,spines=2,hosts=2", "--traffic", "shift"], "Busiest links"),
            "flit": (["--topology", "mesh:4x4", "--rate", "0.1"], "Packet latency"),
            "goodput": (["--devices", "64", "--job-mtbf", "3h", "--seeds", "5"], "Where the time of the job goes"),
            "validate": (["--table", "korthikanti2022_table5"], "error of every row"),
            "diagnose": ([str(ROOT / "tests/fuzz/seeds/telemetry/lines.jsonl")], "Undecided"),
            "sweep": ([str(study), "--store", str(self.folder / "study.db")], "of every point"),
            "compare": (["llama-3-8b-8", "--model", "llama-3-8b", "--machine", "dgx-h100", "--networks", "ports,fifo"],
                        "Side by side"),
            "astra": ([f"--{name}-configuration={astra / file}" for name, file in
                       {"workload": "trace", "system": "system.json", "network": "network.yml",
                        "remote-memory": "memory.json"}.items()], "Cycles of every rank"),
        }
        for command, (words, title) in commands.items():
            with self.subTest(command=command):
                dom = self.shown(self.page(command, *words))
                titles = " ".join(self.titles(dom))
                self.assertIn(title, titles)
                if command in ("explain", "plan", "serve", "compare"):
                    self.assertIn("Nearest published runs", titles)
                elif command != "validate":  # whose rows are the figure; others have no published rows
                    self.assertIn("Held to: ", dom)


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
@unittest.skipUnless(CHROMIUM and DRIVER, "no chromium-driver here")
class Keyboard(unittest.TestCase):
    """A page walked through with keys alone, in a browser that chromedriver holds (W3C WebDriver)."""

    def ask(self, path: str, body: dict | None = None, method: str = "POST"):
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/session{path}", data, method=method)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return json.loads(answer.read())["value"]

    def script(self, text: str):
        return self.ask(f"/{self.session}/execute/sync", {"script": text, "args": []})

    def press(self, *keys: str) -> None:
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask(f"/{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "page.html")
        subprocess.run([BINARY, "simulate", *STEP, "--html", str(self.file)], capture_output=True, check=True)
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(driver.stdout.close)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.terminate)
        self.port = next(found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        options = {"binary": CHROMIUM, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder.name}"]}
        self.session = self.ask("", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})["sessionId"]
        self.addCleanup(self.ask, f"/{self.session}", None, "DELETE")
        self.ask(f"/{self.session}/url", {"url": self.file.as_uri()})

    def test_tab_reaches_the_timeline_whose_arrows_say_what_is_there(self):
        for _ in range(100):
            self.press(TAB)
            if self.script("return document.activeElement.matches('canvas.timeline')"):
                break
        else:
            self.fail("no Tab reaches the timeline")
        said = []
        for key in (RIGHT, RIGHT, DOWN, RIGHT):
            self.press(key)
            said.append(self.script("return document.querySelector('[aria-live]').textContent"))
        self.assertEqual(len(set(said)), 4, said)
        self.assertIn("rank", said[0])

    def test_a_formula_opens_with_enter_and_links_of_the_contents_lead_to_figures(self):
        self.script("document.querySelector('details.formula > summary').focus()")
        self.press(ENTER)
        self.assertTrue(self.script("return document.querySelector('details.formula').open"))
        self.script("document.querySelector('nav a').focus()")
        self.press(ENTER)
        self.assertTrue(self.script("return document.querySelector(location.hash) !== null"))


@unittest.skipUnless(BINARY, "run by ctest, which names the binary")
@unittest.skipUnless(CHROMIUM, "no chromium here")
class LocalPage(unittest.TestCase):
    def test_the_page_of_ui_shows_two_columns_and_a_study_to_share(self):
        server = subprocess.Popen([BINARY, "ui", "--port", "0", "--token", "t"], stderr=subprocess.PIPE, text=True)
        try:
            address = server.stderr.readline().strip()
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run(
                    [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=15000",
                     f"--user-data-dir={folder}", "--disable-background-networking", "--enable-logging=stderr", "--dump-dom",
                     address], capture_output=True, text=True, timeout=300)
        finally:
            server.terminate()
            server.wait()
            server.stderr.close()
        self.assertEqual([line for line in run.stderr.splitlines() if "CONSOLE" in line], [])
        self.assertEqual(run.stdout.count('<article class="column">'), 3)  # A, B and what they are made of
        times = re.findall(r'<p class="time">([\d.]+ m?s)', run.stdout)
        self.assertEqual(len(times), 2, run.stdout[:3000])
        self.assertNotEqual(times[0], times[1])  # B has tp 2
        self.assertRegex(run.stdout, r"[\d.]+ % (less|more) than A")
        self.assertRegex(run.stdout, r"memory [\d.]+ GiB of [\d.]+ GiB")
        self.assertIn('aria-label="global_batch"', run.stdout)  # a slider of a field


class Formulas(unittest.TestCase):
    def test_the_pages_that_figures_name_are_there(self):
        for page in re.findall(r"'docs/([^']+)'", (ROOT / "src/web/source/formulas.js").read_text()):
            name, _, anchor = page.partition("#")
            text = (ROOT / "docs" / name).read_text()
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                       for heading in re.findall(r"^#+ (.*)$", text, re.M)}
            self.assertTrue(not anchor or anchor in anchors, f"{page}: {sorted(anchors)}")


if __name__ == "__main__":
    unittest.main()
