# SPDX-License-Identifier: Apache-2.0
"""Results: what a command prints with --json, as objects."""
import math
import numbers

try:
    import numpy
except ImportError:  # lists stay lists
    numpy = None


class Result:
    """The fields of one JSON object, as attributes and by name.

    Lists of numbers are NumPy arrays (lists where NumPy is not installed), lists of objects are Rows.
    """

    def __init__(self, fields):
        self.__dict__.update({name: converted(value) for name, value in fields.items()})

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
        return Result(value)
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            return Rows(Result(item) for item in value)
        return series([converted(item) if isinstance(item, (dict, list)) else item for item in value])
    return value


def plain(value):
    if isinstance(value, Result):
        return value.asdict()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return [None if isinstance(item, float) and math.isnan(item) else item for item in value.tolist()]
    return [plain(item) for item in value] if isinstance(value, list) else value
