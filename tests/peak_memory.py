"""Measure peak memory in a process of its own, as Linux reports it (VmHWM).

peak = measure_peak_megabytes("raw = …", "parse(raw)", tmp_path)
with open_peak_measurer("from fermata… import parse") as measurer:   # for many: it imports once
    peak = measurer.measure("raw = …", "parse(raw)", tmp_path)
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEASURING_PROGRAM = """
import gc, json, os, sys
def read_peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
{imports}
for line in sys.stdin:
    setup, work, folder = json.loads(line)
    if not os.fork():
        os.chdir(folder)
        exec(setup)
        gc.collect()
        before = read_peak()
        exec(work)
        print((read_peak() - before) // 1024, flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit("The measured code has failed.")
"""
"""Forks for each measurement: the peak of a new process is what it has then."""


class PeakMeasurer:
    """Measures with what a process has imported."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def measure(self, setup: str, statement: str, folder: Path) -> int:
        """Return the megabytes that `statement` needs beyond `setup`. Both are Python code, run in `folder`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([setup, statement, str(folder)]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, "the measured code has failed: its error is above"
        return int(line)


@contextmanager
def open_peak_measurer(imports: str) -> Iterator[PeakMeasurer]:
    with subprocess.Popen(
        [sys.executable, "-c", MEASURING_PROGRAM.format(imports=imports)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ) as process:
        yield PeakMeasurer(process)


def measure_peak_megabytes(setup: str, statement: str, folder: Path) -> int:
    """Return the megabytes that `statement` needs beyond `setup`, in a process that does nothing else."""
    with open_peak_measurer("") as measurer:
        return measurer.measure(setup, statement, folder)
