#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/, README.md and examples/ as a site that needs no network.

    tools/make_site.py FOLDER [--version VERSION]

Debian's sphinx, myst-parser, furo and libjs-katex make it: pages by the questions of docs/README.md, formulas
rendered, a search that works from file://. Links that lead to sources are shown as text.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
KATEX = pathlib.Path("/usr/share/javascript/katex")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[\w-]+)?\)")
BEGIN = """<!doctype html><meta charset="utf-8"><title>Orrery</title>
<meta http-equiv="refresh" content="0; url=docs/README.html"><a href="docs/README.html">Documentation</a>
"""
TREE = "```{{toctree}}\n:hidden:\n:caption: '{}'\n\n{}\n```\n"


def pages() -> list[pathlib.Path]:
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "configs").rglob("*.md")]
    return [ROOT / "README.md", *sorted(page for page in found if "site" not in page.relative_to(ROOT).parts)]


def staged_text(page: pathlib.Path, shipped: set[pathlib.Path]) -> str:
    """The page's text with links that lead to staged pages or pictures, and the others as text."""

    def link(match: re.Match) -> str:
        text, path, anchor = match.groups()
        target = (page.parent / path).resolve()
        if target.is_dir():
            target /= "README.md"
        if target in shipped:
            return f"[{text}]({os.path.relpath(target, page.parent)}{anchor or ''})"
        return text if text.startswith("`") or not text else f"{text}"

    parts = re.split(r"(^```.*?^```$)", page.read_text(), flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def contents(text: str) -> str:
    """A hidden tree for each question of docs/README.md, and one of all pages that no question names."""
    trees = ""
    named: list[str] = []
    for heading, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        links = list(dict.fromkeys(re.findall(r"\]\(([\w./-]+\.md)\)", body)))
        named += links
        trees += TREE.format(heading, "\n".join(path.removesuffix(".md") for path in links))
    rest = sorted(str(page.relative_to(ROOT / "docs")) for page in pages() if ROOT / "docs" in page.parents)
    rest = [path for path in rest if path not in named and path != "README.md"]
    others = [f"../{page.relative_to(ROOT)}" for page in pages() if ROOT / "docs" not in page.parents]
    trees += TREE.format("Models, formula by formula", "\n".join(p.removesuffix(".md") for p in rest))
    return trees + TREE.format("The repository and its examples", "\n".join(p.removesuffix(".md") for p in others))


def stage(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pictures = [file for kind in ("svg", "png") for file in (ROOT / "docs").rglob(f"*.{kind}")]
    pictures += (ROOT / "examples").rglob("*.svg")
    shipped = {file.resolve() for file in [*pages(), *pictures]}
    for file in [*pages(), *pictures]:
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, copy)
            continue
        text = staged_text(file, shipped)
        copy.write_text(text + ("\n" + contents(text) if file == ROOT / "docs/README.md" else ""))
    shutil.copytree(ROOT / "docs/site", folder / "_site")
    shutil.copytree(KATEX, folder / "_katex/katex", ignore=shutil.ignore_patterns("*.mjs", "katex.css", "katex.js"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the site goes")
    parser.add_argument("--version", default="")
    given = parser.parse_args()
    if not KATEX.exists():
        sys.exit("make_site.py: no libjs-katex; tools/setup.sh site installs what a site needs")
    source = given.folder.resolve().with_name(given.folder.name + "-source")
    stage(source)
    # Debian's interpreter has Debian's Sphinx, whatever stands first on PATH.
    subprocess.run(["/usr/bin/python3", "-m", "sphinx", "-q", "-b", "html", "-c", source / "_site", "-W", "--keep-going",
                    "-d", source / "_doctrees", "-D", f"release={given.version}", source, given.folder], check=True)
    shutil.rmtree(source)
    (given.folder / "index.html").write_text(BEGIN)


if __name__ == "__main__":
    main()
