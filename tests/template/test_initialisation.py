"""Clients that a function creates before its first invocation: one of each service that its role lets it call."""

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.quick_suite_samples import sample_for_quick_suite
from tests.template.templates import FUNCTION_FOLDERS, ROOT, Template, resources_of_type

FOLDERS = ["round", *sorted(FUNCTION_FOLDERS - {"round"})]
"""Of the functions. The round function has the most to open, so it is the first."""
CLIENTS = {"dynamodb": "dynamodb", "s3": "s3", "kms": "kms", "states": "stepfunctions"}
"""Names of boto3's clients, by the prefix of their actions."""
PACKAGES_OF_A_ROUND = {
    *(
        "agents",
        "aws",
        "conversations",
        "credentials",
        "domain",
        "drivers",
        "limits",
        "pricing",
        "tools",
        "turns",
        "usage",
    ),
    "webhooks",
}
"""What a usual round runs. The other packages are imported by the rounds that need them."""
MAX_MODULES_OF_A_ROUND = 202
"""Of the package, without the drivers, which follow while Lambda initialises it. One takes a third of a millisecond."""
RARE_LIBRARIES = {"PIL", "cryptography", "dulwich", "jwt", "mcp", "mcp_types", "re2", "starlette", "yaml"}
PROGRAM = """
import gc, importlib, json, sys
collections = []
gc.callbacks.append(lambda phase, info: phase == "start" and collections.append(info["generation"]))
import fermata
imported_from = len(collections)
import boto3
created = []
create = boto3.client
boto3.client = lambda service, **how: created.append(service) or create(service, **how)
app = importlib.import_module(f"functions.{sys.argv[1]}.app")
collected = len(collections) - imported_from
at_import = sorted(created)
modules = sorted(sys.modules)
created.clear()
from fermata.aws.resources import get_resources
resources = get_resources()
used = {"dynamodb": "tables", "s3": "blobs", "kms": "vault", "stepfunctions": "workflow"}
for service in at_import:
    getattr(resources, used[service])
is_tls_ready = connections = 0
if "fermata.drivers.transport.http_connection" in sys.modules:
    from fermata.drivers.transport.http_connection import get_tls_context
    is_tls_ready = get_tls_context.cache_info().currsize
if hasattr(app, "get_provider_connection"):
    connections = app.get_provider_connection.cache_info().currsize
report = {"at_import": at_import, "later": created, "tls": is_tls_ready, "connections": connections}
is_frozen = gc.get_freeze_count() > 10_000
report |= {"modules": modules}
print(json.dumps(report | {"collected": collected, "collects": gc.isenabled(), "frozen": is_frozen}))
"""


@functools.cache
def import_function(folder: str, initialization_type: str = "") -> Any:
    """Import a function in a process of its own; return what it created then, and what its resources did later."""
    tables = "CONVERSATIONS_TABLE BRIDGES_TABLE PRICING_TABLE USAGE_TABLE SETTINGS_TABLE CONTENT_TABLE"
    names = f"{tables} BUCKET KEY_ID STATE_MACHINE_ARN"
    environment = dict.fromkeys(names.split(), "a-name") | {
        "PYTHONPATH": ":".join(sys.path),
        "PATH": os.environ["PATH"],
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "none",
    }
    if initialization_type:
        environment["AWS_LAMBDA_INITIALIZATION_TYPE"] = initialization_type
    command = [sys.executable, "-c", PROGRAM, folder]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def functions_by_folder(source: Template) -> dict[str, Template]:
    functions = resources_of_type(source, "AWS::Serverless::Function").values()
    return {function["CodeUri"].rpartition("/")[2]: function for function in functions}


def services_of_role(source: Template, function: Template) -> set[str]:
    role = source["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    statements = [one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]]
    actions = [action for one in statements for action in _list(one["Action"]) if "Stream" not in str(one["Resource"])]
    return {CLIENTS[prefix] for prefix in (action.partition(":")[0] for action in actions) if prefix in CLIENTS}


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("folder", sample_for_quick_suite(FOLDERS, every=8))
def test_a_function_opens_its_clients_while_lambda_initialises_it(source: Template, folder: str) -> None:
    function = functions_by_folder(source)[folder]
    imported = import_function(folder, "on-demand")
    assert set(imported["at_import"]) == services_of_role(source, function)
    assert imported["later"] == []
    assert imported["tls"] == imported["connections"] == (folder == "round")
    assert imported["collected"] < 10, "garbage was collected while it was imported"
    assert (imported["collects"], imported["frozen"]) == (True, True)


def test_the_round_function_imports_what_a_usual_round_runs_and_nothing_else() -> None:
    modules = import_function("round")["modules"]
    own = [name for name in modules if name.startswith("fermata.")]
    assert {name.split(".")[1] for name in own} == PACKAGES_OF_A_ROUND
    assert len(own) <= MAX_MODULES_OF_A_ROUND, "import what few rounds need where it is used"
    assert RARE_LIBRARIES.isdisjoint(modules)


def test_every_function_is_initialised_here(source: Template) -> None:
    assert set(functions_by_folder(source)) == set(FOLDERS)


def test_elsewhere_importing_a_function_leaves_the_garbage_collector_alone() -> None:
    imported = import_function("round")
    assert imported["collected"] > 100
    assert (imported["collects"], imported["frozen"]) == (True, False)


@pytest.mark.parametrize("folder", sample_for_quick_suite(["round", "api", "stream_turns"], every=3))
def test_elsewhere_importing_a_function_creates_nothing(folder: str) -> None:
    imported = import_function(folder)
    assert imported["at_import"] == []
