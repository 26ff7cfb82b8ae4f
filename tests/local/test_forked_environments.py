"""Check what the processes of different functions share, with real processes and without the emulator."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.emulator.runtime.execution_environments import FunctionTemplate, Preload, SharedProcesses
from local.processes import PROJECT_PYTHON
from tests.local.emulator_lab import zip_source
from tests.local.test_environment_pool import VARIABLES
from tests.waiting import wait_until

SOURCE = """
import os, sys
from pathlib import Path

already_imported = sorted(sys.modules)
hidden = sorted(name for name, module in sys.modules.items() if module is None)

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def handler(event, context):
    colour = os.environ.get("COLOUR")
    shared = parent(os.getppid())
    imports = {"imported": already_imported, "hidden": hidden}
    return {"shared": shared, "template": os.getppid(), "colour": colour, **imports}
"""
PRELOAD = Preload(packages=("wsgiref",), left_out=("wsgiref.simple_server",), hidden=("antigravity",))
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedProcesses]:
    processes = SharedProcesses(str(PROJECT_PYTHON), PRELOAD)
    yield processes
    processes.close()


@pytest.fixture
def run_function(shared: SharedProcesses) -> Run:
    def run(**variables: str) -> dict[str, Any]:
        all_variables = VARIABLES | {"AWS_LAMBDA_FUNCTION_NAME": "sharing"} | variables
        template = FunctionTemplate(shared, "app.handler", zip_source(SOURCE), all_variables)
        environment = template.fork_environment()
        job = {"event": {}, "requestId": "1", "arn": "arn", "deadline": 0}
        result: dict[str, Any] = environment.invoke(job, 60).result
        environment.close()
        template.close()
        return result

    return run


def test_functions_share_a_process_and_have_variables_of_their_own(run_function: Run) -> None:
    red, blue = run_function(COLOUR="red"), run_function(COLOUR="blue")
    assert (red["colour"], blue["colour"]) == ("red", "blue")
    assert red["shared"] == blue["shared"]
    assert red["template"] != blue["template"]


def test_a_shared_package_is_imported_with_all_its_modules(run_function: Run) -> None:
    imported = set(run_function()["imported"])
    assert {"wsgiref", "wsgiref.handlers", "wsgiref.validate"} <= imported
    assert "wsgiref.simple_server" not in imported, "it is left out"


def test_a_library_that_functions_do_not_have_on_aws_is_hidden_from_them(run_function: Run) -> None:
    assert "antigravity" in run_function()["hidden"]


def test_a_function_with_another_log_level_does_not_share(run_function: Run) -> None:
    assert run_function(LOG_LEVEL="DEBUG")["shared"] != run_function(LOG_LEVEL="INFO")["shared"]


def test_a_shared_process_that_was_killed_is_replaced(run_function: Run) -> None:
    before = run_function()["shared"]
    os.kill(before, signal.SIGKILL)
    assert run_function()["shared"] != before


def test_a_template_ends_when_it_is_closed(run_function: Run) -> None:
    template = run_function()["template"]
    wait_until(lambda: not Path(f"/proc/{template}").exists(), "the template has ended")
