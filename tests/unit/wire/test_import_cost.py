"""What a door pays for before its first request."""

import subprocess
import sys

import pytest

HEAVY = ("httpx", "starlette", "uvicorn", "aws_xray_sdk", "aws_lambda_powertools.event_handler")


@pytest.mark.parametrize(
    "module", ["fermata.wire.http.dispatch", "fermata.wire.bodies.requests", "functions.credentials.app"]
)
def test_the_edge_loads_nothing_it_does_not_use(module: str) -> None:
    program = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("door", ["stream", "tool_result", "round", "api"])
def test_the_imaging_library_waits_for_the_first_picture(door: str) -> None:
    program = f"import sys, functions.{door}.app; print('PIL' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "False"
