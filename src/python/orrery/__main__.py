# SPDX-License-Identifier: Apache-2.0
"""The command of a wheel: `orrery simulate --model gpt2 ...`, or the same after `python3 -m`."""
import signal
import sys

from orrery import _core


def main():
    """Runs the command that the process's arguments name; returns its exit status."""
    for one in (signal.SIGINT, signal.SIGPIPE):  # as of any program: the interpreter would keep them for itself
        signal.signal(one, signal.SIG_DFL)
    return _core.main(["orrery", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
