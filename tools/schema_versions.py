#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives every schema of docs/schema its version, by what changed in it since a commit.

    tools/schema_versions.py [COMMIT]          writes the line "$id" of each docs/schema/NAME.json; COMMIT: HEAD
    tools/schema_versions.py --check [COMMIT]  names the files whose line is not what it would write

"$id" is https://orrery.invalid/schema/NAME-MAJOR.MINOR.json (a name, not a place: .invalid is reserved for that). A
reader of MAJOR.MINOR can read what any later MINOR of the same MAJOR describes:

    minor  a field or a value more; a field that was sometimes left out of a result is always there, or one that a file
           must have may be left out
    major  a field or a value less, another type, a field of a result that may be left out, or one more that a file must have

Sentences change no version. A new schema is 1.0.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINE = re.compile(r'^  "\$id": "https://orrery\.invalid/schema/([\w-]+)-(\d+)\.(\d+)\.json",\n', re.M)


def fields(schema: dict, at: str = "$", needed: bool = False) -> dict[str, tuple]:
    """(types, values, whether it is always there) of everything in a schema, by where it is."""
    types = schema.get("type", schema.get("$ref", []))
    found = {at: ({types} if isinstance(types, str) else set(types), set(schema.get("enum", [])), needed)}
    for name, inner in schema.get("properties", {}).items():
        found |= fields(inner, f"{at}.{name}", name in schema.get("required", []))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found |= fields(schema[key], f"{at}.{key}", True)
    for i, inner in enumerate(schema.get("oneOf", [])):
        found |= fields(inner, f"{at}|{inner.get('title', i)}", True)
    for name, inner in schema.get("$defs", {}).items():
        found |= fields(inner, f"#/$defs/{name}", True)
    return found


def step(old: dict, new: dict, written_by_people: bool) -> str:
    """What a change of a schema is: "major", "minor" or ""."""
    before, after = fields(old), fields(new)
    kinds = {"major" for at in before if at not in after}
    for at, (types, values, needed) in after.items():
        if at not in before:
            kinds.add("major" if written_by_people and needed else "minor")
            continue
        old_types, old_values, old_needed = before[at]
        if types != old_types or old_values - values or (values and not old_values):
            kinds.add("major")
        if values - old_values:
            kinds.add("minor")
        if needed != old_needed:
            kinds.add("major" if needed == written_by_people else "minor")
    return "major" if "major" in kinds else "minor" if kinds else ""


def version(name: str, committed: str, text: str) -> tuple[int, int]:
    """The version of a schema's text after the one that is committed ("" where none is)."""
    line = LINE.search(committed)
    if not line:
        return 1, 0
    major, minor = int(line[2]), int(line[3])
    kind = step(json.loads(committed), json.loads(text), name.endswith("-file"))
    return (major + 1, 0) if kind == "major" else (major, minor + 1) if kind else (major, minor)


def with_version(text: str, name: str, number: tuple[int, int]) -> str:
    line = f'  "$id": "https://orrery.invalid/schema/{name}-{number[0]}.{number[1]}.json",\n'
    head, _, rest = LINE.sub("", text).partition('schema",\n')
    return f'{head}schema",\n{line}{rest}'


def write(check: bool = False, commit: str = "HEAD") -> list[str]:
    """Writes the lines that are not right, or with `check` leaves them; returns the names of their files."""
    wrong = []
    for file in sorted((ROOT / "docs/schema").glob("*.json")):
        committed = subprocess.run(["git", "show", f"{commit}:docs/schema/{file.name}"], cwd=ROOT, capture_output=True,
                                   text=True).stdout
        text = file.read_text()
        made = with_version(text, file.stem, version(file.stem, committed, text))
        if made != text:
            wrong.append(file.name)
            if not check:
                file.write_text(made)
    return wrong


def main() -> int:
    check = "--check" in sys.argv
    wrong = write(check, *[word for word in sys.argv[1:] if word != "--check"])
    if check and wrong:
        print(f"docs/schema: {', '.join(wrong)}: run tools/schema_versions.py", file=sys.stderr)
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
