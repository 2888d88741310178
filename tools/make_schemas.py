#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON schemas of files that people write, for editors: plan, machine and engine.

    tools/make_schemas.py BINARY docs/schema

Fields of a plan and an engine are those that the command declares (`orrery mcp` lists types and sentences, `orrery show`
the structure), fields of a machine those of docs/models/machine_fields.md, which a test holds to the reader.
"""
import json
import pathlib
import re
import subprocess
import sys

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


def main() -> None:
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, make in (("plan", plan), ("engine", engine), ("machine", machine)):
        (folder / f"{name}-file.json").write_text(json.dumps(make(binary), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
