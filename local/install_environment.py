"""Create a virtual environment from a lock file, and say how it goes.

`python install_environment.py FOLDER LOCK [PROJECT …]`; projects are installed so that changes in them take effect.
Standard library only, because nothing is installed yet. A line is printed at each step and every few seconds.
"""

import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

PROGRESS_SECONDS = 5.0
MAX_KEPT_LINES = 40

_LOCKED = re.compile(r"^[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?==", re.MULTILINE)


class InstallProgress:
    """Turns the output of pip into a few lines with the seconds so far."""

    def __init__(self, name: str, package_count: int) -> None:
        self._name = name
        self._package_count = package_count
        self._found_count = 0
        self._started = self._last_line = time.monotonic()

    def report(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(f"{self._name}: {text} ({self._last_line - self._started:.0f} s)", flush=True)

    def read_pip_line(self, line: str) -> None:
        if line.startswith(("Collecting ", "Requirement already satisfied: ")):
            self._found_count += 1
            if time.monotonic() - self._last_line >= PROGRESS_SECONDS:
                self.report(f"{self._found_count} of {self._package_count} packages are here")
        elif line.startswith("Installing collected packages: "):
            self.report(f"unpacking {line.count(',') + 1} packages, the longest step")


def main(folder: str, lock: str, *projects: str) -> None:
    progress = InstallProgress(folder, len(_LOCKED.findall(Path(lock).read_text(encoding="utf-8"))))
    progress.report(f"installing {progress._package_count} packages of {lock}")
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True, symlinks=True)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    _run_pip([*pip, "--no-deps", "--require-hashes", "-r", lock], progress)
    if projects:
        editables = [part for project in projects for part in ("-e", project)]
        _run_pip([*pip, "--quiet", "--no-deps", "--no-build-isolation", *editables], progress)
    progress.report("ready")


def _run_pip(command: Sequence[str], progress: InstallProgress) -> None:
    """Run pip. If it fails, its last lines are printed and this program exits."""
    lines: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 - pip
    for line in _iter_lines(process):
        lines = [*lines[-MAX_KEPT_LINES:], line]
        progress.read_pip_line(line)
    if process.wait() != 0:
        print("".join(lines), file=sys.stderr)
        progress.report("the installation failed; what pip said is above")
        sys.exit(1)


def _iter_lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    assert process.stdout is not None
    yield from process.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
