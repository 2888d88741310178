# SPDX-License-Identifier: Apache-2.0
"""What a run of a command takes."""
import os
import subprocess
import sys
import tempfile


def measure(command) -> tuple[float, float, str]:
    """CPU seconds of the whole process, MB at the peak, what it printed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"failed with {process.returncode}: {' '.join(command)}")
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.read().decode()
