# SPDX-License-Identifier: Apache-2.0
"""The pages agree with the tree and with each other."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
LINK = re.compile(r"\]\((?!https?:)([\w./{},-]+?\.?\w+)(#[\w-]+)?\)")


def pages() -> list[pathlib.Path]:
    folders = ["docs", "src", "examples", "configs"]
    found = [page for folder in folders for page in (ROOT / folder).rglob("*.md")]
    return [ROOT / "README.md", *found]


def anchors(page: pathlib.Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def scores_of_readme() -> list[list[str]]:
    """Words of each row of the table that `orrery validate` prints."""
    block = re.search(r"^table +rows .*?^```", (ROOT / "README.md").read_text(), re.M | re.S)
    return [line.split() for line in block.group().splitlines()[1:-1]]


def scores_of_page() -> list[list[str]]:
    text = (ROOT / "docs/validation.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (.*) \|$", text, re.M)
    return [[name, *rest.replace("|", " ").split()] for name, rest in rows]


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in pages():
            for path, anchor in LINK.findall(page.read_text()):
                if not re.search(r"[./]", path):
                    continue  # a formula such as h[i](T)
                target = page.parent / path
                self.assertTrue(target.exists(), f"{page}: {path}")
                if anchor and target.suffix == ".md":
                    self.assertIn(anchor[1:], anchors(target), f"{page}: {path}{anchor}")

    def test_the_readme_has_the_scores_of_the_validation_page(self):
        page = scores_of_page()
        self.assertGreater(len(page), 10)
        rows = scores_of_readme()
        self.assertGreater(len(rows), 5)
        self.assertEqual([row for row in rows if row not in page], [])

    def test_the_readme_begins_the_answer_that_the_tour_shows(self):
        blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
        answer = next(block for block in blocks if "Step time" in block)
        self.assertTrue(answer in (ROOT / "docs/tour.md").read_text(), answer)

    def test_the_readme_is_short(self):
        self.assertLessEqual((ROOT / "README.md").read_text().count("\n"), 120)

    def test_every_folder_of_sources_has_a_readme(self):
        folders = {file.parent for file in SOURCE.rglob("*.cc")}
        self.assertEqual([f for f in sorted(folders) if not (f / "README.md").exists()], [])

    def test_every_room_says_what_may_change_and_what_pins_it(self):
        for page in SOURCE.rglob("README.md"):
            for words in ("You may change ", "Pinned by test: "):
                self.assertIn("\n" + words, page.read_text(), page)


if __name__ == "__main__":
    unittest.main()
