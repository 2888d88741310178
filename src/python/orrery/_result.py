# SPDX-License-Identifier: Apache-2.0
"""Results: what a command prints with --json, as objects."""
import dataclasses
import functools
import keyword
import math
import numbers

try:
    import numpy
except ImportError:  # lists stay lists
    numpy = None


class Result:
    """The fields of one JSON object, as attributes and by name: a dataclass of those that are names in Python.

    Lists of numbers are NumPy arrays (lists where NumPy is not installed), lists of objects are Rows.
    """

    def __getitem__(self, name):
        try:
            return self.__dict__[name]
        except KeyError:
            raise KeyError(f"{name!r}; fields: {', '.join(self.__dict__)}") from None

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; fields: {', '.join(self.__dict__)}")

    def __iter__(self):
        return iter(self.__dict__)

    def __len__(self):
        return len(self.__dict__)

    def __contains__(self, name):
        return name in self.__dict__

    def keys(self):
        return self.__dict__.keys()

    def items(self):
        return self.__dict__.items()

    def asdict(self):
        """Plain dicts, lists and numbers, as the JSON has them."""
        return {name: plain(value) for name, value in self.__dict__.items()}

    def __eq__(self, other):
        return isinstance(other, Result) and self.asdict() == other.asdict()

    __hash__ = None

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


@functools.lru_cache(maxsize=None)
def dataclass_of(base, names):
    return dataclasses.make_dataclass(base.__name__, names, bases=(base,), eq=False, repr=False, kw_only=True)


def result_of(fields, base=Result):
    """The fields of a JSON object as an instance of their dataclass, which is made of `base`."""
    kind = dataclass_of(base, tuple(name for name in fields if name.isidentifier() and not keyword.iskeyword(name)))
    result = kind.__new__(kind)
    result.__dict__.update({name: converted(value) for name, value in fields.items()})
    return result


class Rows(list):
    """A list of results of the same fields; `rows.column("time_s")` is one field of all, as an array."""

    def column(self, name):
        return series([row[name] if name in row else None for row in self])


def series(values):
    """An array of numbers where all are numbers or missing (NaN), else the list."""
    if numpy is None or not values:
        return values
    number = [isinstance(value, numbers.Real) and not isinstance(value, bool) for value in values]
    if all(number):
        return numpy.array(values)
    if any(number) and all(is_number or value is None for is_number, value in zip(number, values)):
        return numpy.array([math.nan if value is None else value for value in values], dtype=float)
    return values


def converted(value):
    if isinstance(value, dict):
        return result_of(value)
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            return Rows(result_of(item) for item in value)
        return series([converted(item) if isinstance(item, (dict, list)) else item for item in value])
    return value


def plain(value):
    if isinstance(value, Result):
        return value.asdict()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return [None if isinstance(item, float) and math.isnan(item) else item for item in value.tolist()]
    return [plain(item) for item in value] if isinstance(value, list) else value
