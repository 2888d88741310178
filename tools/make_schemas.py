#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON schemas of files that people write, for editors: plan, machine, engine and study.

    tools/make_schemas.py BINARY docs/schema

Fields of a plan and an engine are those that the command declares (`orrery mcp` lists types and sentences, `orrery show`
the structure), fields of a machine those of docs/models/machine_fields.md, which a test holds to the reader; fields of a
study's kind are those of the table of kinds in docs/sweep.md. Written to docs/schema, each gets its version
(schema_versions.py).
"""
import json
import pathlib
import re
import subprocess
import sys

import schema_versions

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| `(\w+)`( \(required[^)]*\))? \| ([^|]*) \| (.*) \|$", re.M)
QUANTITY = {"type": ["string", "number"]}
TYPES = {"text": {"type": ["string", "number"]}, "whole number": {"type": "integer"}, "number": {"type": "number"},
         "true or false": {"type": "boolean"}, "map": {"type": "object"}, "list": {"type": "array"},
         "map or text": {"type": ["object", "string"]},
         "list of whole numbers": {"type": "array", "items": {"type": "integer"}}}


def ask(binary: str, *words: str, text: str = "") -> dict:
    return json.loads(subprocess.run([binary, *words], input=text, capture_output=True, text=True, check=True).stdout)


def head(title: str, sentence: str) -> dict:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "SPDX-License-Identifier: Apache-2.0",
            "title": title, "description": sentence, "type": "object"}


def options(binary: str, command: str) -> dict:
    """Types and sentences of a command's options, as agents get them."""
    listed = ask(binary, "mcp", text='{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    return next(tool for tool in listed["result"]["tools"] if tool["name"] == command)["inputSchema"]["properties"]


def plan(binary: str) -> dict:
    declared = options(binary, "simulate")
    fields = {}
    for name in ask(binary, "show", "plan", "--json"):
        fields[name] = dict(declared[name])
        if isinstance(fields[name].get("type"), list):  # true stands for a choice, as of overlap_ep
            fields[name]["type"] = ["string", "number", "boolean"]
        for other in re.findall(r"--([\w-]+)", declared[name]["description"].partition("; also ")[2]):
            fields[other.replace("-", "_")] = dict(fields[name], description=f"framework's name of {name}")
    return {**head("plan of orrery", "how a model is spread over devices (orrery show plan)"),
            "properties": {"description": {"type": "string", "description": "one sentence"}, **fields},
            "additionalProperties": False}


def of_value(value, sentence: str) -> dict:
    kinds = {bool: "boolean", int: "number", float: "number", str: ["string", "number"]}
    found = {"description": sentence} if sentence else {}
    if type(value) in kinds:
        found["type"] = kinds[type(value)]
    return found


def engine(binary: str) -> dict:
    declared = options(binary, "serve")
    fields: dict = {}
    for section, value in ask(binary, "show", "engine", "vllm@0.19", "--json").items():
        if not isinstance(value, dict):
            fields[section] = of_value(value, "name and release, as vllm@0.19, whose settings hold where none is given")
            continue
        inner = {}
        for name, item in value.items():
            known = declared.get(f"{section}_{name}", declared.get(name, {}))
            inner[name] = of_value(item, known.get("description", ""))
            inner[name].update({"enum": known["enum"]} if "enum" in known else {})
        fields[section] = {"type": "object", "properties": inner}
    return {**head("engine of orrery", "an inference engine and its settings (orrery show engine)"), "properties": fields}


def table(text: str) -> tuple[dict, list[str]]:
    fields, required = {}, []
    for name, needed, value, meaning in ROW.findall(text):
        words = [word.strip() for word in value.split(",")]
        fields[name] = {"description": meaning,
                        **(TYPES.get(value.strip()) or ({"enum": words} if len(words) > 2 else QUANTITY))}
        if needed == " (required)":
            required.append(name)
    return fields, required


def machine(_: str) -> dict:
    page = (ROOT / "docs/models/machine_fields.md").read_text()
    parts = {}
    for title, text in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        for name in re.findall(r"`([\w.]+)`", title) or [""]:
            parts.setdefault(name, table(text))
    for same in ("network.one_shot", "network.two_shot"):
        parts[same] = parts["network.protocols"]
    schema: dict = {}
    for name in sorted(parts, key=lambda each: each.count(".") + bool(each)):
        fields, required = parts[name]
        whole = {"type": "object", "properties": fields, "required": required}
        if not name:
            schema = whole
            continue
        place: dict = schema
        for step in name.split("."):
            place = place.get("items", place)["properties"][step]
        if place["type"] == "array":
            place["items"] = whole
        else:
            place.update(whole)
    # A list may give what a data type changes; the network of several sorts of devices is one for all.
    return {**head("machine of orrery", "devices and network, each number with its origin (docs/models/machine_fields.md)"),
            **schema, "required": ["name", "network"]}


NAMED = {"model": "model", "machine": "machine", "plan": "plan", "engine": "engine"}
VALUES = {"description": "a list, one value, or a range {from, to, step} or {from, to, factor}"}
SPACE = {
    "vary": {"type": "object", "description": "names and their values; all combinations, the last name fastest",
             "additionalProperties": VALUES},
    "random": {"type": "object", "description": "so many points instead of all combinations", "required": ["samples"],
               "properties": {"samples": {"type": "integer"}, "seed": {"type": "integer"}}, "additionalProperties": False},
    "list": {"type": "array", "description": "points as they stand; with vary, each of them with all of it",
             "items": {"type": "object"}},
    "skip_invalid": {"type": "boolean", "description": "true: a point that is refused is a row with its error"},
}


def kind_of_study(kind: str, fields: str, figures: str) -> dict:
    """The alternative of one row of the table: `name`, `name: {inner, inner}`, and texts between them."""
    properties = {"kind": {"type": "string", "enum": [kind], "description": "its rows: " + figures.replace("`", "")}}
    inside: list[str] = []  # names that are fields of another one
    for text in re.findall(r"`([^`]*)`", re.sub(r"\([^)]*\)", "", fields)):
        name, _, inner = text.partition(": ")
        if not re.fullmatch(r"[a-z_]+", name) or name in inside:
            continue
        if name in NAMED:
            properties[name] = {"type": ["string", "object"], "description": f"a name, a file, or the fields of a {NAMED[name]}"}
        elif inner:
            names = re.findall(r"(\w+)(?:: \[[^]]*\])?", inner.strip("{}"))
            inside += names
            properties[name] = {"type": "object", "description": "fields: " + ", ".join(names) if len(names) > 1 else "by name"}
        else:
            properties[name] = {"description": f"as --{name.replace('_', '-')}"}
    return {"title": f"study of kind {kind}", "type": "object", "properties": {**properties, **SPACE},
            "required": [] if kind == "simulate" else ["kind"], "additionalProperties": False}


def study(_: str) -> dict:
    page = (ROOT / "docs/sweep.md").read_text()
    table_of_kinds = page.partition("| kind | description | figures |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| ([^|]*) \|$", table_of_kinds, re.M)
    return {**head("study of orrery", "one description and what of it is varied (docs/sweep.md)"),
            "oneOf": [kind_of_study(*row) for row in rows]}


def main() -> None:
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, make in (("plan", plan), ("engine", engine), ("machine", machine), ("study", study)):
        (folder / f"{name}-file.json").write_text(json.dumps(make(binary), indent=2, ensure_ascii=False) + "\n")
    if folder.resolve() == ROOT / "docs/schema":
        schema_versions.write()


if __name__ == "__main__":
    main()
