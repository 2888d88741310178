# SPDX-License-Identifier: Apache-2.0
"""Bounds on the step times of very many plans at once."""
import array
import contextlib

from orrery import _core
from orrery._ask import checked, source_of, text_of
from orrery._describe import Plan

try:
    import numpy
except ImportError:
    numpy = None


class Bounds:
    """Answers by row: least_time_s, which no simulated step is faster than, and least_memory_bytes of
    the fullest device; NaN where a plan cannot run, and why in mistake(row)."""

    def __init__(self, answer):
        self.least_time_s = numbers("d", answer["least_time_s"])
        self.least_memory_bytes = numbers("d", answer["least_memory_bytes"])
        self._number = numbers("i", answer["mistake"])
        self._mistakes = answer["mistakes"]

    def __len__(self):
        return len(self.least_time_s)

    def mistake(self, row):
        """Why the plan of a row cannot run; None where it can."""
        number = int(self._number[row])
        return None if number < 0 else self._mistakes[number]

    def __repr__(self):
        return f"Bounds(of {len(self)} plans)"


def bounds(model, machine, plan=None, devices=None, **columns):
    """Bounds of the plans that the columns describe, without events or a simulation.

    A column is a field of a plan, or `devices`: an array or list with a value for every row, or one
    value for all. What no column gives is the plan's, or completed as the commands do. Of a hundred
    thousand rows most of the time is the first row of each set of fields that shapes a block.
    """
    if isinstance(plan, Plan):
        columns = {**plan.fields, **columns}
        plan = plan.source
    if devices is not None:
        columns["devices"] = devices
    rows = {len(values) for values in columns.values() if is_series(values)}
    if len(rows) > 1:
        raise ValueError(f"columns have {', '.join(map(str, sorted(rows)))} rows, expected as many each")
    count = rows.pop() if rows else 1
    with contextlib.ExitStack() as stack:
        named = [source_of(kind, value, stack)
                 for kind, value in (("model", model), ("machine", machine))]
        own_plan = "" if plan is None else source_of("plan", plan, stack)
        encoded = [encoded_column(name, values, count) for name, values in columns.items()]
        return Bounds(checked(_core.bounds(*named, own_plan, 0, encoded)))


def is_series(values):
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes))


def encoded_column(name, values, count):
    """(name, distinct texts, the number of each row's text)."""
    if not is_series(values):
        return name, [text_of(values)], bytes(4 * count)
    if numpy is not None:
        distinct, rows = numpy.unique(numpy.asarray(values), return_inverse=True)
        return name, [text_of(value) for value in distinct], rows.astype("uint32").tobytes()
    texts = [text_of(value) for value in values]
    distinct = sorted(set(texts))
    number = {text: place for place, text in enumerate(distinct)}
    return name, distinct, array.array("I", [number[text] for text in texts]).tobytes()


def numbers(code, buffer):
    if numpy is not None:
        return numpy.frombuffer(buffer, dtype={"d": "float64", "i": "int32"}[code])
    return array.array(code, buffer)
