"""A program that is stopped by Ctrl-C while it loads ends as quietly as later."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fermata_command import EXIT_CODE_INTERRUPTED

ROOT = Path(__file__).parents[3]
INTERRUPTED_IMPORT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.mark.parametrize("module", [["fermata_command"], ["local", "demo"], ["local", "run"]])
def test_ctrl_c_while_a_program_loads_prints_nothing_and_exits_with_130(module: list[str], tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text(INTERRUPTED_IMPORT)
    paths = f"{tmp_path}{os.pathsep}{ROOT}{os.pathsep}{ROOT / 'client'}"
    command = [sys.executable, "-m", *module]
    process = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        preexec_fn=partial(
            signal.signal, signal.SIGINT, signal.SIG_DFL
        ),  # ignored where the tests run in the background
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (EXIT_CODE_INTERRUPTED, "", "")


def test_the_program_of_the_local_cloud_names_those_it_has(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "local", "halt"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (1, "usage: python -m local {demo,run}\n")
