# SPDX-License-Identifier: Apache-2.0
"""Descriptions: models, machines, plans and engines by name, file, Hugging Face id or as fields."""
import collections.abc
import json
import os
import pathlib
import re
import tempfile
import warnings

HUGGING_FACE_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Description:
    """A description by its name, a file, or the fields themselves as a dict.

    What `orrery show` says of it stands in attributes: Model("llama-3-8b").parameters.total.
    """

    kind = ""

    def __init__(self, source, **fields):
        if not isinstance(source, (str, os.PathLike, collections.abc.Mapping, type(None))):
            raise TypeError(f"found {type(source).__name__}, expected a name, a file or a dict of fields")
        self.source = os.fspath(source) if isinstance(source, os.PathLike) else source
        self.fields = fields
        self._shown = None

    def _show(self):
        if self._shown is None:
            from orrery._ask import run
            if isinstance(self.source, collections.abc.Mapping):
                with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
                    name = str(file_of(self.kind, self.source, pathlib.Path(folder)))
                    self._shown = run("show", self.kind, name, **self.fields)
            else:
                words = [] if self.source is None else [resolved(self.kind, self.source)]
                self._shown = run("show", self.kind, *words, **self.fields)
        return self._shown

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._show(), name)

    def asdict(self):
        return self._show().asdict()

    def __repr__(self):
        fields = "".join(f", {name}={value!r}" for name, value in self.fields.items())
        return f"{type(self).__name__}({self.source!r}{fields})"


class Model(Description):
    """A model: a name of `orrery list models`, a config.json, an id such as "meta-llama/Llama-3.1-8B"
    (its config.json in the local cache of huggingface_hub, else the shipped model of that name), or
    the fields of a config.json as a dict."""

    kind = "model"

    def __init__(self, source):
        super().__init__(source)


class Machine(Description):
    """A machine: a name of `orrery list machines`, a file, or its fields as a dict."""

    kind = "machine"

    def __init__(self, source):
        super().__init__(source)


class Plan(Description):
    """A plan: a name of `orrery list plans`, a file or a dict, and fields that win over it:
    Plan("llama-3-8b-8", zero=3), Plan(tp=8, dp=4)."""

    kind = "plan"

    def __init__(self, source=None, **fields):
        super().__init__(source, **fields)


class Engine(Description):
    """An inference engine: a name of `orrery list engines`, a file, or its fields as a dict."""

    kind = "engine"

    def __init__(self, source):
        super().__init__(source)


def file_of(kind, fields, folder):
    """A file of the fields in `folder`; JSON is YAML too."""
    path = folder / (f"{kind}.json" if kind == "model" else f"{kind}.yaml")
    path.write_text(json.dumps(fields))
    return path


def resolved(kind, name):
    """The name or file that is meant: of ids of Hugging Face what is here without a network."""
    if kind != "model" or not HUGGING_FACE_ID.fullmatch(name) or os.path.exists(name):
        return name
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    hub = pathlib.Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    configs = sorted(hub.glob("models--" + name.replace("/", "--") + "/snapshots/*/config.json"),
                     key=lambda path: path.stat().st_mtime)
    if configs:
        return str(configs[-1])
    bare = name.split("/")[1].lower()
    from orrery._ask import Note, run
    if bare in [row.name for row in run("list", "models").models]:
        warnings.warn(f"model {name}: its config.json is not in {hub}; taken is the shipped {bare}", Note,
                      stacklevel=2)
        return bare
    return name
