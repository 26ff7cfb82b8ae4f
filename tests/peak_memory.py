"""Measure peak memory in a process of its own, as Linux reports it (VmHWM)."""

import subprocess
import sys
from pathlib import Path

MEASURING_PROGRAM = """
import gc
def read_peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
{before}
gc.collect()
before = read_peak()
{work}
print((read_peak() - before) // 1024)
"""


def measure_peak_megabytes(setup: str, statement: str, folder: Path) -> int:
    """Return the memory that `statement` needs beyond `setup`. Both are Python code, run in `folder`."""
    program = MEASURING_PROGRAM.format(before=setup, work=statement)
    environment = {"PYTHONPATH": ":".join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=folder, check=True
    )
    return int(process.stdout.strip())
