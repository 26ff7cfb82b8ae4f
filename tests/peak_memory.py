"""How much memory something takes at its height, in a process of its own, as Linux tells it."""

import subprocess
import sys
from pathlib import Path

MEASURING_PROGRAM = """
import gc
def height():
    with open("/proc/self/status") as told:
        return next(int(line.split()[1]) for line in told if line.startswith("VmHWM"))
{before}
gc.collect()
begun = height()
{work}
print((height() - begun) // 1024)
"""


def measure_peak_megabytes(setup: str, statement: str, folder: Path) -> int:
    """What `work` needs beyond `before`; both are Python, run in `folder`."""
    program = MEASURING_PROGRAM.format(before=setup, work=statement)
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=folder, check=True
    )
    return int(done.stdout.strip())
