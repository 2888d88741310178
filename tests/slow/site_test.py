# SPDX-License-Identifier: Apache-2.0
"""The pages as a site: links, formulas, search from a disk, and nothing from the network."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
HAS_SPHINX = subprocess.run(["/usr/bin/python3", "-c", "import sphinx, myst_parser, furo"],
                            capture_output=True).returncode == 0


@unittest.skipUnless(HAS_SPHINX and pathlib.Path("/usr/share/javascript/katex").exists(), "tools/setup.sh site")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.made.name) / "site"
        made = subprocess.run([sys.executable, "-B", ROOT / "tools/make_site.py", cls.site, "--version", "1.2.3"],
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stderr  # a link that leads nowhere is a warning, and so an error

    def dom(self, page: str) -> str:
        run = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                              "--virtual-time-budget=15000", "--dump-dom", f"file://{self.site}/{page}"],
                             capture_output=True, text=True, timeout=240)
        return run.stdout

    def test_every_page_is_there_and_asks_nobody(self):
        for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
            if "site" not in page.relative_to(ROOT).parts:
                self.assertTrue((self.site / page.relative_to(ROOT)).with_suffix(".html").exists(), page)
        for page in self.site.rglob("*.html"):
            found = re.findall(r'(?:src|<link[^>]*href)="(https?:[^"]*)', page.read_text())
            self.assertEqual(found, [], page)

    @unittest.skipUnless(CHROMIUM, "no chromium")
    def test_formulas_are_rendered_and_the_search_finds_from_a_disk(self):
        self.assertIn('class="katex', self.dom("docs/models/goodput.html"))
        self.assertIn("docs/models/goodput.html", self.dom("search.html?q=goodput"))


if __name__ == "__main__":
    unittest.main()
