# SPDX-License-Identifier: Apache-2.0
"""Simulator and planner for training and serving large models on many accelerators.

    import orrery
    run = orrery.simulate(model="llama-3-8b", machine="dgx-h100", devices=8)
    print(run.step_time_s, run.mfu)

Every function is a command of `orrery` and takes its options as keywords (`global_batch=64` is
`--global-batch 64`); it returns what the command prints with --json as an object with the same field
names. Mistakes are an `orrery.Error` with the command's text. docs/python.md describes it all.
"""
from warnings import warn as _warn

from orrery._core import version as __version__
from orrery._ask import Error, Mistake, Note, options, run
from orrery._bounds import Bounds, bounds
from orrery._describe import Engine, Machine, Model, Plan
from orrery._result import Result, Rows
from orrery.operators import Operator, Operators, capture, from_operators


def simulate(**options):
    """The time of one training step, where it goes, and memory: `orrery simulate`.

    A plan that does not fit has a result, whose `fits` is false, and a warning (orrery.Note); with
    allow_oom=False it is an error, as it is to the command."""
    if not {"allow_oom", "chakra", "graph", "jobs"} & options.keys():
        options["allow_oom"] = True
    result = run("simulate", **options)
    if "allow_oom" in options and "fits" in result and not result.fits:
        _warn(f"the plan does not fit: {_overflow(result)}; allow_oom=False makes that an error", Note,
              stacklevel=2)
    return result


def _overflow(result):
    fullest = max(result.memory_bytes, key=lambda stage: stage.total - stage.capacity)
    return f"{fullest.total / 2**30:.4g} GiB of {fullest.capacity / 2**30:.4g} GiB of a device"


def estimate(**options):
    """The time of one training step without events, and a bound on it: `orrery estimate`."""
    return run("estimate", **options)


def plan(**options):
    """The fastest plan for a number of devices, and what bounds it: `orrery plan`."""
    return run("plan", **options)


def serve(**options):
    """An inference engine that serves requests: `orrery serve`."""
    return run("serve", **options)


def explain(**options):
    """Why a step takes as long as it does: `orrery explain`."""
    return run("explain", **options)


def collective(kind, **options):
    """The time of one collective by size: `orrery collective KIND`."""
    return run("collective", kind, **options)


def validate(*file, **options):
    """Predictions beside published results: `orrery validate --table NAME`, or rows of a file of your own."""
    return run("validate", *file, **options)


def sweep(study, store=None, **options):
    """The rows of a study: `orrery sweep STUDY --store FILE`. `study` is a file or the description
    itself as a dict; without a store the results are kept nowhere else."""
    import tempfile
    if store is not None:
        return run("sweep", study, store=store, **options)
    with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
        return run("sweep", study, store=f"{folder}/study.db", **options)


__all__ = [
    "Bounds", "Engine", "Error", "Machine", "Mistake", "Model", "Note", "Operator", "Operators", "Plan",
    "Result", "Rows", "bounds", "capture", "collective", "estimate", "explain", "from_operators",
    "options", "plan", "run", "serve", "simulate", "sweep", "validate",
]
