"""Test that Lambda functions behave as on AWS."""

import os
import signal
import sys
import threading
from pathlib import Path

from local.processes import PROJECT_PYTHON, EmulatorProcess
from tests.local.emulator_lab import EmulatorLab, zip_source
from tests.waiting import wait_until


def test_a_function_runs_under_the_projects_interpreter_with_its_packages(lab: EmulatorLab) -> None:
    said, failed = lab.invoke_function("lab", {})
    assert failed is None
    assert Path(said["executable"]) == PROJECT_PYTHON
    assert not any(".venv-emulator" in entry for entry in said["path"])


def test_a_function_sees_the_environment_of_lambda_and_nothing_of_the_shell(lab: EmulatorLab) -> None:
    said, _ = lab.invoke_function("lab", {})
    assert said["environment"]["AWS_LAMBDA_FUNCTION_NAME"] == "lab"
    assert said["environment"]["AWS_ENDPOINT_URL"] == lab.endpoint
    assert not {"PYTHONPATH", "VIRTUAL_ENV", "STATE_DIR", "PYTEST_CURRENT_TEST"} & set(said["environment"])


def test_the_context_has_the_values_of_aws(lab: EmulatorLab) -> None:
    context = lab.invoke_function("lab", {})[0]["context"]
    assert context["name"] == "lab"
    assert context["arn"] == lab.function
    assert 0 < context["left"] <= 300_000
    assert len(context["id"]) == 36


def test_an_error_has_its_own_type_and_the_environment_stays_warm(lab: EmulatorLab) -> None:
    before = lab.invoke_function("lab", {})[0]["pid"]
    failure, kind = lab.invoke_function("lab", {"lab": "errors", "script": {"0.0": [["raise", "KeyError"]]}})
    assert kind == "Unhandled"
    assert failure["errorType"] == "KeyError"
    assert "asked for" in failure["errorMessage"]
    assert "in handler" in failure["stackTrace"][0]
    assert lab.invoke_function("lab", {})[0]["pid"] == before


def test_a_process_that_ends_is_a_failure_and_the_next_call_gets_another(lab: EmulatorLab) -> None:
    before = lab.invoke_function("lab", {})[0]["pid"]
    failure, _ = lab.invoke_function("lab", {"lab": "exits", "script": {"0.0": [["exit"]]}})
    assert failure["errorType"] == "Runtime.ExitError"
    assert lab.invoke_function("lab", {})[0]["pid"] != before


def test_a_template_that_was_killed_is_started_again(lab: EmulatorLab, tmp_path: Path) -> None:
    lab.make_function("killed")
    parent = lab.invoke_function("killed", {})[0]["parent"]
    os.kill(parent, signal.SIGKILL)
    gate = tmp_path / "gate"
    script = {"0.0": [["note", "here"], ["until", str(gate)]]}
    hold = threading.Thread(target=lab.invoke_function, args=("killed", {"lab": "killed", "script": script}))
    hold.start()
    lab.wait_for_notes("killed", "here")
    answers = [lab.invoke_function("killed", {}) for _ in range(2)]
    assert answers[0][0]["errorType"] == "Runtime.ExitError"
    assert answers[1][1] is None
    gate.touch()
    hold.join()


def test_a_function_that_takes_too_long_is_stopped(lab: EmulatorLab) -> None:
    lab.make_function("slow", Timeout=1)
    failure, _ = lab.invoke_function("slow", {"lab": "slow", "script": {"0.0": [["sleep", 20]]}})
    assert failure["errorType"] == "Sandbox.Timedout"
    assert "timed out after 1.00 seconds" in failure["errorMessage"]


def test_a_module_that_cannot_be_imported_is_the_answer(lab: EmulatorLab) -> None:
    lab.make_function("broken", "import nothing_of_this_name")
    failure, _ = lab.invoke_function("broken", {})
    assert failure["errorType"] == "Runtime.ImportModuleError"
    assert "nothing_of_this_name" in failure["errorMessage"]


def test_an_answer_that_is_no_json_is_a_marshal_error(lab: EmulatorLab) -> None:
    lab.make_function("unspeakable", "def handler(event, context):\n    return {1, 2}")
    assert lab.invoke_function("unspeakable", {})[0]["errorType"] == "Runtime.MarshalError"


def test_an_answer_above_the_limit_of_lambda_is_refused(lab: EmulatorLab) -> None:
    lab.make_function("long", "def handler(event, context):\n    return 'x' * event['size']")
    assert len(lab.invoke_function("long", {"size": 5_000_000})[0]) == 5_000_000
    assert lab.invoke_function("long", {"size": 6_300_000})[0]["errorType"] == "Function.ResponseSizeTooLarge"


def test_printed_output_is_in_the_log(lab: EmulatorLab) -> None:
    many = [["print", f"line {number}"] for number in range(3)] + [["print", "x" * 200_000], ["raise", "OSError"]]
    lab.invoke_function("lab", {"lab": "prints", "script": {"0.0": many}})
    logs = lab_logs(lab, "/aws/lambda/lab")
    assert {"line 0", "line 1", "line 2", "x" * 200_000} <= set(logs)
    assert "OSError: asked for" in logs


def test_new_code_serves_the_next_call_and_lets_the_running_one_finish(lab: EmulatorLab, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    lab.make_function("updated")
    answers: list[object] = []
    script = {"lab": "updated", "script": {"0.0": [["note", "here"], ["until", str(gate)]]}}
    running = threading.Thread(target=lambda: answers.append(lab.invoke_function("updated", script)))
    running.start()
    lab.wait_for_notes("updated", "here")
    lab.functions.update_function_code(
        FunctionName="updated", ZipFile=zip_source("def handler(event, context): return 2")
    )
    assert lab.invoke_function("updated", {}) == (2, None)
    assert answers == []
    gate.touch()
    running.join()
    assert answers == [(None, None)]


def test_a_new_environment_variable_reaches_the_next_call(lab: EmulatorLab) -> None:
    lab.make_function("configured", Environment={"Variables": {"COLOUR": "red"}})
    assert lab.invoke_function("configured", {})[0]["environment"]["COLOUR"] == "red"
    lab.functions.update_function_configuration(
        FunctionName="configured", Environment={"Variables": {"COLOUR": "blue"}}
    )
    assert lab.invoke_function("configured", {})[0]["environment"]["COLOUR"] == "blue"


def test_calls_at_the_same_time_have_processes_of_their_own(
    lab: EmulatorLab, emulator: EmulatorProcess, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = {"lab": "parallel", "script": {"0.0": [["note", "here"], ["until", str(gate)]]}}
    calls = [threading.Thread(target=lab.invoke_function, args=("lab", script)) for _ in range(8)]
    for call in calls:
        call.start()
    assert len({note.pid for note in lab.wait_for_notes("parallel", "here", times=8)}) == 8
    assert sum(process["busy"] for process in emulator.list_function_processes()["lab"]) >= 8
    gate.touch()
    for call in calls:
        call.join()
    wait_until(
        lambda: not any(process["busy"] for process in emulator.list_function_processes()["lab"]), "all are idle again"
    )


def lab_logs(lab: EmulatorLab, group: str) -> list[str]:
    from local.aws_clients import get_client

    pages = get_client("logs", lab.endpoint).get_paginator("filter_log_events").paginate(logGroupName=group)
    return [event["message"] for page in pages for event in page["events"]]


def test_the_tests_run_where_the_functions_run() -> None:
    assert Path(sys.prefix).samefile(PROJECT_PYTHON.parents[1])
