"""The front door, in which the streaming function runs, imports no library that it has no use for."""

import os
import subprocess
import sys

from local.processes import ROOT

UNUSED_LIBRARIES = ("httpx", "fermata_client", "PIL", "mcp", "dulwich")
"""Each takes megabytes of a process that always runs."""
PROGRAM = f"""
import sys
sys.path.insert(0, "functions/stream_turns")
import local.front_door.__main__, app
print([name for name in {UNUSED_LIBRARIES} if name in sys.modules])
"""


def test_the_front_door_imports_what_it_uses() -> None:
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "AWS_DEFAULT_REGION": "eu-west-1"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    assert run.stdout.strip() == "[]"
