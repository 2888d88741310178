#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes orrery/__init__.pyi of the package in FOLDER: keywords from what the commands declare, results
from the schemas of what they print.

    tools/make_stubs.py FOLDER SCHEMA_FOLDER
"""
import json
import keyword
import pathlib
import re
import sys

COMMANDS = ("simulate", "estimate", "plan", "serve", "explain", "collective", "validate", "sweep")
SCHEMAS = {"sweep": "rows"}
SOURCES = {"model": "Model", "machine": "Machine", "plan": "Plan", "engine": "Engine", "study": None}
SCALARS = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py when the package is built.
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import ArrayLike, NDArray

__version__: str

'''
TAIL = '''
class Mistake(NamedTuple):
    where: str
    field: str
    found: str
    expected: str

class Error(ValueError):
    mistakes: list[Mistake]
    def __init__(self, text: str, mistakes: Sequence[tuple[str, str, str, str]] = ...) -> None: ...

class Note(UserWarning): ...

class Bounds:
    least_time_s: NDArray[numpy.float64]
    least_memory_bytes: NDArray[numpy.float64]
    def __len__(self) -> int: ...
    def mistake(self, row: int) -> str | None: ...

class Operator(NamedTuple):
    name: str
    kind: str
    flops: float
    bytes: int
    fused: int

class Operators(list[Operator]):
    flops: NDArray[numpy.float64]
    bytes: NDArray[numpy.float64]
    @property
    def total_flops(self) -> float: ...
    @property
    def total_bytes(self) -> int: ...
    def of_kind(self, kind: str) -> "Operators": ...

def bounds(model: _Model, machine: _Machine, plan: _Plan | None = ..., devices: ArrayLike | None = ...,
           **columns: ArrayLike) -> Bounds: ...
def from_operators(operators: Sequence[Mapping[str, Any]]) -> Operators: ...
def capture(module: Any, example_inputs: Sequence[Any]) -> Operators: ...
def run(command: str, *words: Any, **given: Any) -> Any: ...
def options(command: str) -> Rows: ...
'''
BASES = '''class Result(Mapping[str, Any]):
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def asdict(self) -> dict[str, Any]: ...

class Rows(list[Any]):
    def column(self, name: str) -> Any: ...

class Model:
    source: Any
    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def asdict(self) -> dict[str, Any]: ...

class Machine:
    source: Any
    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def asdict(self) -> dict[str, Any]: ...

class Engine:
    source: Any
    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def asdict(self) -> dict[str, Any]: ...

class Plan:
    source: Any
    fields: dict[str, Any]
    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | None = ..., **fields: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def asdict(self) -> dict[str, Any]: ...

_Model = str | os.PathLike[str] | Model | Mapping[str, Any]
_Machine = str | os.PathLike[str] | Machine | Mapping[str, Any]
_Plan = str | os.PathLike[str] | Plan | Mapping[str, Any]
_Engine = str | os.PathLike[str] | Engine | Mapping[str, Any]
_Study = str | os.PathLike[str] | Mapping[str, Any]

'''


class Classes:
    """The classes of one command's result, inner ones first."""

    def __init__(self, schema: dict):
        self.whole = schema
        self.texts: list[str] = []

    def type_of(self, schema: dict, name: str) -> str:
        if "$ref" in schema:
            schema = self.whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not kinds:
            return "Any"
        return " | ".join(sorted({self.type_of_kind(schema, kind, name) for kind in kinds}))

    def type_of_kind(self, schema: dict, kind: str, name: str) -> str:
        if kind == "object":
            return self.class_of(schema, name) if schema.get("properties") else "Result"
        if kind == "array":
            inner = schema.get("items", {}).get("type")
            return "NDArray[numpy.float64]" if inner in ("integer", "number") else \
                "Rows" if inner == "object" else "list[Any]"
        return SCALARS[kind]

    def class_of(self, schema: dict, name: str) -> str:
        lines = ["@dataclass(eq=False, repr=False, kw_only=True)", f"class {name}(Result):"]
        if schema.get("description"):
            lines.append(f"    {schema['description']!r}")
        for field, inner in schema["properties"].items():
            if not field.isidentifier() or keyword.iskeyword(field):
                continue
            kind = self.type_of(inner, name + "_" + field.capitalize())
            lines.append(f"    {field}: {kind}")
            if inner.get("description"):
                lines.append(f"    {inner['description']!r}")
        self.texts.append("\n".join(lines) + "\n")
        return name


def keyword_type(option: dict) -> str:
    name, kind = option["name"], option["kind"]
    if name in SOURCES:
        return "_" + name.capitalize()
    if option["flag"] or "BOOL" in kind:
        return "bool"
    choices = re.fullmatch(r"\{([\w,.-]+)\}", kind)
    if choices:
        return "Literal[" + ", ".join(repr(choice) for choice in choices[1].split(",")) + "]"
    scalar = {"INT": "int", "NUMBER": "float | int"}.get(kind, "str | float | int")
    return f"Sequence[{scalar}] | {scalar}" if option["repeated"] else f"{scalar} | str" if "str" not in scalar else scalar


def function_of(command: str, options: list[dict], result: str) -> str:
    named = [option for option in options if option["name"] not in ("json", "csv") and option["name"].isidentifier()
             and not keyword.iskeyword(option["name"]) and not option["positional"]]
    words = {"validate": "*file: str, ", "collective": "kind: str, *, ",
             "sweep": "study: _Study, "}.get(command, "*, ")
    keywords = ",\n        ".join(f"{option['name']}: {keyword_type(option)} | None = ..." for option in named)
    return f"def {command}({words}{keywords}) -> {result}: ...\n"


def main(folder: pathlib.Path, schemas: pathlib.Path) -> None:
    sys.path.insert(0, str(folder))
    from orrery import _core  # the native half alone: it has what is declared
    text = HEAD + BASES
    functions = ""
    for command in COMMANDS:
        schema = json.loads((schemas / f"{SCHEMAS.get(command, command)}.json").read_text())
        classes = Classes(schema)
        name = command.capitalize() + "Result"
        if schema.get("properties"):
            classes.class_of(schema, name)
        else:
            classes.texts.append(f"class {name}(Result): ...\n")
        text += "\n".join(classes.texts) + "\n"
        functions += function_of(command, _core.options(command), name)
    (folder / "orrery/__init__.pyi").write_text(text + TAIL + functions)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
