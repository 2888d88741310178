# SPDX-License-Identifier: Apache-2.0
"""Questions to the commands: keywords in, a Result out."""
import collections
import collections.abc
import contextlib
import json
import os
import pathlib
import tempfile

from orrery import _core
from orrery._describe import Description, file_of, resolved
from orrery._result import Result, Rows, converted, result_of

Mistake = collections.namedtuple("Mistake", "where field found expected")
Mistake.__doc__ = "One mistake of an input: where it is, of which field, what was found, what would be right."

KINDS = {"model": "model", "machine": "machine", "plan": "plan", "engine": "engine", "study": "study"}


class Error(ValueError):
    """The input was wrong. str(error) is what the command prints; `mistakes` has them one by one."""

    def __init__(self, text, mistakes=()):
        super().__init__(text)
        self.mistakes = [Mistake(*mistake) for mistake in mistakes]


class Note(UserWarning):
    """Something that was inferred."""


def options(command):
    """The options of a command: Rows of name, kind, sentence, group, positional, flag, repeated, output."""
    return Rows(result_of(option) for option in _core.options(command))


def run(command, *words, **given):
    """What `orrery COMMAND` prints with --json. `words` are its arguments without a name, keywords its
    options; a list gives an option that may be repeated several times, or joins its values by commas."""
    declared = {option["name"]: option for option in _core.options(command)}
    with contextlib.ExitStack() as stack:
        texts = positional_texts(command, declared, words, stack)
        for name, value in expanded(given).items():
            for text in texts_of(name, value, declared.get(name, {}), stack):
                texts.append((name, text))
        if "json" in declared:
            texts.append(("json", "true"))
        answer = checked(_core.ask(command, texts))
    fields = json.loads(answer["text"]) if "json" in declared else {"text": answer["text"]}
    result = result_of(fields, result_type(command)) if isinstance(fields, dict) else converted(fields)
    return result


def checked(answer):
    if "error" in answer:
        raise Error(answer["error"], answer["mistakes"])
    return answer


_types = {}


def result_type(command):
    """The subclass of Result of a command, "SimulateResult"."""
    if command not in _types:
        name = "".join(word.capitalize() for word in command.split("-")) + "Result"
        _types[command] = type(name, (Result,), {"__doc__": f"What `orrery {command} --json` prints.",
                                                 "__module__": "orrery"})
    return _types[command]


def positional_texts(command, declared, words, stack):
    names = [name for name, option in declared.items() if option["positional"]]
    texts = []
    for number, word in enumerate(words):
        if not names:
            raise Error(f"unexpected argument '{word}'")
        name = names[min(number, len(names) - 1)]
        texts += [(name, text) for text in texts_of(name, word, declared[name], stack)]
    return texts


def expanded(given):
    """Keywords with the fields of a Plan beside its name; what is given by itself wins."""
    plan = given.get("plan")
    if not isinstance(plan, Description) or not plan.fields:
        return given
    fields = {**plan.fields, **{name: value for name, value in given.items() if name != "plan"}}
    return {"plan": plan.source, **fields} if plan.source is not None else fields


def texts_of(name, value, option, stack):
    """The texts of one keyword; none where it is None."""
    if value is None:
        return []
    if name in KINDS:
        several = value if isinstance(value, (list, tuple)) else [value]
        return [",".join(source_of(KINDS[name], one, stack) for one in several)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, collections.abc.Mapping):
        raise TypeError(f"{name}: found a dict, expected a single value")
    if isinstance(value, (str, bytes, os.PathLike)) or not hasattr(value, "__iter__"):
        return [text_of(value)]
    texts = [text_of(item) for item in value]
    return texts if option.get("repeated") else [",".join(texts)]


def text_of(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "item") and not isinstance(value, str):  # a NumPy scalar
        value = value.item()
    return value if isinstance(value, str) else repr(value)


def source_of(kind, value, stack):
    """A name or file that the command takes for a model, machine, plan, engine or study."""
    if isinstance(value, Description):
        value = value.source
    if isinstance(value, collections.abc.Mapping):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="orrery-"))
        return str(file_of(kind, value, pathlib.Path(folder)))
    return resolved(kind, text_of(value))
