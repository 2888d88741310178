# SPDX-License-Identifier: Apache-2.0
"""What tools/check_tree.py says of comments and pages: a doc comment that begins without a subject, a torn
table, a page that tells its own history, a file that is named and is not there (docs/contributing.md)."""
import os
import pathlib
import re

# A first sentence that begins with one of these has no subject, or hides it; one that is short, no verb either.
BLOCK = re.compile(r"^(?: *///(?!<).*\n)+", re.MULTILINE)
VAGUE = re.compile(r" */// (Of|What|Those|Likewise|That|Its?|They|Their|Both|Who|Whose|Which|Whether|How|Why|As|By|To|Into|"
                   r"Per|Until|Against|Through|Along|Within|Between|Behind|Beside)\b")
SHORT = re.compile(r" */// (In|At|On|For|From|With|Without|When|Where|After|Before|Once|Over|Above|Below)( \S+){1,5}?[.;:]\s")
COMMENT = re.compile(r" *//(?:/(?!/))?(?!/) ?( *)(\S.*)$")
COLUMNS = 100
GAP = re.compile(r"\S {2,}(?=\S)")  # between two columns of a table
# What a page says of its own past, which git keeps.
HISTORY = re.compile(r"\b(used to (?:be|have)|no longer|(?:before|after) this change|was changed|today|now|formerly|previously)\b",
                     re.IGNORECASE)
QUOTED = re.compile(r"`([^`\n]+)`")
NAMED = re.compile(r"[\w./-]+\.(?:h|cc|md|sh)|(?:src|docs|tests|tools|bench|cmake|configs|examples)/[\w./-]+")
IN_COMMENT = re.compile(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.(?:h|cc)(?![\w/])")
# Files of other programs, and the page that `orrery validate` writes.
FOREIGN = re.compile(r"NAME|^(?:torch|flash_fwd|capacityScheduler|microBatchScheduler|src/graph/tuning|deepspeed|docs/(?:_pages|source|performance))")
WRITTEN = {"docs/validation.md"}


def names_of(root: pathlib.Path) -> set[str]:
    """Every file and folder, by each end of its path."""
    names = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f != "build" and not f.startswith(".")]
        path = pathlib.Path(folder).relative_to(root).parts
        for name in (*files, *folders):
            names.update("/".join((*path[i:], name)) for i in range(len(path) + 1))
    return names


def vague(source: pathlib.Path, text: str):
    for block in BLOCK.finditer(text):
        if found := VAGUE.match(block[0]) or SHORT.match(block[0]):
            line = text.count("\n", 0, block.start()) + 1
            yield f"{source}:{line}: found a comment that begins with '{found[1]}', expected a subject"


def is_torn(before: str, here: str, after: str) -> bool:
    """Whether `here` is the end of the table's row, or of the indented line, before it."""
    row, end, next_row = (COMMENT.match(line) for line in (before, here, after))
    if not row or not end or len(row[1]) < 2 or len(end[2].split()) > 4 or GAP.search(end[2]):
        return False
    full = len(before) + 1 + len(end[2].split()[0]) > COLUMNS
    in_first_column = GAP.search(row[2]) and len(end[1]) <= len(row[1])
    outside = next_row and len(row[1]) >= len(end[1]) < len(next_row[1])
    return bool(full and (in_first_column or outside))


def torn(source: pathlib.Path, text: str):
    lines = text.split("\n")
    for i in range(1, len(lines) - 1):
        if COLUMNS - 40 < len(lines[i - 1]) and "//" in lines[i] and is_torn(*lines[i - 1:i + 2]):
            yield f"{source}:{i + 1}: found the torn end of a row, expected it under the row's text"
    for i, line in enumerate(lines):
        if len(line) > COLUMNS and line.lstrip().startswith("///"):
            yield f"{source}:{i + 1}: found {len(line)} columns, expected at most {COLUMNS}"


def unknown_in_comments(source: pathlib.Path, text: str, names: set[str]):
    for i, line in enumerate(text.split("\n")):
        at = line.find("//")
        if at >= 0 and '"' not in line[:at]:
            for name in IN_COMMENT.findall(line, at):
                if name not in names and not FOREIGN.search(name):
                    yield f"{source}:{i + 1}: found {name}, which is no file"


def mistakes_in_source(source: pathlib.Path, names: set[str]):
    text = source.read_text()
    yield from vague(source, text)
    yield from torn(source, text)
    yield from unknown_in_comments(source, text, names)


def mistakes_in_page(page: pathlib.Path, root: pathlib.Path, names: set[str]):
    for i, line in enumerate(page.read_text().split("\n")):
        for quoted in QUOTED.findall(line):
            name = quoted.rstrip("/").removeprefix("../").removeprefix("./")
            known = name in names or "howto" in page.parts and os.path.dirname(name) in names  # of a file to add
            if NAMED.fullmatch(name) and not known and not FOREIGN.search(name):
                yield f"{page}:{i + 1}: found `{quoted}`, which is no file"
        if page.is_relative_to(root / "docs") and (found := HISTORY.search(QUOTED.sub("", line))):
            yield f"{page}:{i + 1}: found '{found[1]}', expected what is, not what was"


def mistakes(root: pathlib.Path):
    names = names_of(root)
    for folder in ("src", "tests", "bench"):
        for source in sorted((root / folder).rglob("*")):
            if source.suffix in {".h", ".cc"}:
                yield from mistakes_in_source(source, names)
    pages = [root / "README.md", *(p for folder in ("docs", "src", "tests", "configs") for p in (root / folder).rglob("*.md"))]
    for page in sorted(pages):
        if page.exists() and page.relative_to(root).as_posix() not in WRITTEN:
            yield from mistakes_in_page(page, root, names)
