"""Test that the template is deployed, and that an update changes parameters and keeps data."""

import json
from pathlib import Path

import pytest

from local import deploy
from local.aws_clients import get_client
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab

SMALL = Path(__file__).with_name("small") / "template.yaml"


def up(
    emulator: EmulatorProcess, *, stack: str = "small", variables: dict[str, str] | None = None, **parameters: str
) -> dict[str, str]:
    return deploy.deploy_stack(emulator.endpoint, parameters, variables, template_path=SMALL, stack_name=stack)


def colour(lab: EmulatorLab, outputs: dict[str, str]) -> object:
    return json.loads(lab.wait_for_end(lab.start_execution(outputs["MachineArn"]))["output"])["colour"]


def variables(emulator: EmulatorProcess, function: str) -> dict[str, str]:
    config = get_client("lambda", emulator.endpoint).get_function_configuration(FunctionName=function)
    return dict(config["Environment"]["Variables"])


def test_a_template_becomes_a_stack(emulator: EmulatorProcess, lab: EmulatorLab) -> None:
    outputs = up(emulator, stack="new", Stage="local")
    assert outputs["StageName"] == "local"
    assert colour(lab, outputs) == "red"
    assert variables(emulator, outputs["EchoName"])["TABLE"] == outputs["TableName"]


def test_an_update_brings_parameters_to_functions_and_machine_and_keeps_the_data(
    emulator: EmulatorProcess, lab: EmulatorLab
) -> None:
    before = up(emulator)
    item = {"pk": {"S": "kept"}}
    get_client("dynamodb", emulator.endpoint).put_item(TableName=before["TableName"], Item=item)
    assert up(emulator) == before
    after = up(emulator, Colour="blue", variables={"ONLY_IN_TESTS": "1"})
    assert after == before
    assert colour(lab, after) == "blue"
    assert variables(emulator, after["EchoName"]) == {
        "COLOUR": "blue",
        "TABLE": after["TableName"],
        "ONLY_IN_TESTS": "1",
    }
    assert get_client("dynamodb", emulator.endpoint).get_item(TableName=after["TableName"], Key=item)["Item"] == item


def test_a_parameter_the_template_does_not_have_is_named(emulator: EmulatorProcess) -> None:
    with pytest.raises(deploy.DeploymentFailedError, match=r"template.yaml has no parameter Color\."):
        up(emulator, stack="typo", Color="blue")


def test_a_failed_deployment_names_the_reason(emulator: EmulatorProcess, tmp_path: Path) -> None:
    broken = tmp_path / "template.yaml"
    broken.write_text("Resources: {Thing: {Type: AWS::No::Such, Properties: {}}}")
    with pytest.raises(deploy.DeploymentFailedError, match="Such"):
        deploy.deploy_stack(emulator.endpoint, {}, template_path=broken, stack_name="broken")


def test_equal_folders_give_equal_archives(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "app.pyc").write_bytes(b"stale")
    (tmp_path / "app.py").write_text("one")
    first = deploy.zip_folder(tmp_path)
    (tmp_path / "app.py").touch()
    assert deploy.zip_folder(tmp_path) == first
    assert b"__pycache__" not in first
