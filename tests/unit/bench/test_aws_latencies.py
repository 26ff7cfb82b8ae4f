"""Test the table of simulated latencies: it names calls that exist, and all that the package makes."""

import re
from pathlib import Path

import boto3
from botocore import xform_name

import fermata.aws
from bench.aws_latencies import TYPICAL_LATENCY_MS

SERVICES = ("dynamodb", "s3", "kms", "stepfunctions")
SIMULATED_BY_THE_EMULATOR = {"states.Transition", "lambda.Invoke"}


def list_operations() -> dict[str, str]:
    """Map names of client methods to calls as the fault injector names them."""
    models = {name: boto3.client(name, region_name="eu-west-1").meta.service_model for name in SERVICES}
    return {
        xform_name(operation): f"{name}.{operation}"
        for name, model in models.items()
        for operation in model.operation_names
    }


def test_every_call_that_the_package_makes_has_a_latency() -> None:
    operations = list_operations()
    sources = "".join(path.read_text() for path in Path(fermata.aws.__path__[0]).glob("*.py"))
    made = {operations[method] for method in re.findall(r"_client\.(\w+)\(", sources) if method in operations}
    assert len(made) > 10
    assert made - TYPICAL_LATENCY_MS.keys() == set()
    assert TYPICAL_LATENCY_MS.keys() - set(operations.values()) == SIMULATED_BY_THE_EMULATOR
