"""Check that the emulator does nothing for requests that are not signed with the secret of this run."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from local.aws_clients import get_client, make_client, make_session
from local.processes import EMULATOR_PYTHON, ROOT, EmulatorProcess, inherited_environment
from local.request_signature import CREDENTIALS_VARIABLE, RunCredentials, get_run_credentials, sign_run_request
from local.signed_pages import RunSignature
from tests.local.emulator_lab import EmulatorLab
from tests.waiting import BACKSTOP_SECONDS

pytestmark = pytest.mark.cloud
STACK_TEMPLATE = {
    "Resources": {
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": {"ZipFile": "def handler(event, context): pass"},
                "Handler": "index.handler",
                "Runtime": "python3.12",
                "Role": "arn:aws:iam::000000000000:role/x",
            },
        }
    }
}
CREATE_STACK = {
    "Action": "CreateStack",
    "Version": "2010-05-15",
    "StackName": "evil",
    "TemplateBody": json.dumps(STACK_TEMPLATE),
}
UNSIGNED_REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a stack with a function, by an image's address": ("GET", "/", {"params": CREATE_STACK}),
    "a stack, by a form": ("POST", "/", {"data": CREATE_STACK}),
    "a table": ("POST", "/", {"headers": {"x-amz-target": "DynamoDB_20120810.ListTables"}, "content": b"{}"}),
    "a bucket": ("PUT", "/evil-bucket", {}),
    "a function's result": ("POST", "/2015-03-31/functions/lab/invocations", {"content": b"{}"}),
    "the deployed API": ("GET", "/restapis/x/local/_user_request_/version", {}),
    "the same API": ("GET", "/_aws/execute-api/x/local/version", {}),
    "the emulator's state": ("POST", "/_ministack/reset", {}),
    "an address signed in its query": ("GET", "/?X-Amz-Credential=test/20261128/us-east-1/s3/aws4_request", {}),
    "its health": ("GET", "/_ministack/health", {}),
    "its requests": ("GET", "/_fermata/requests", {}),
    "its processes": ("GET", "/_fermata/processes", {}),
    "credentials of an instance": ("GET", "/latest/meta-data/iam/security-credentials/x", {}),
}
BROWSER_HEADERS = [
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
]
OTHER_HOSTS = ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", "evil.example:{port}"]


@pytest.fixture
def http(emulator: EmulatorProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=emulator.endpoint, trust_env=False, timeout=BACKSTOP_SECONDS) as client:
        yield client


@pytest.mark.parametrize("name", UNSIGNED_REQUESTS)
def test_an_unsigned_request_does_nothing(lab: EmulatorLab, http: httpx.Client, name: str) -> None:
    method, path, options = UNSIGNED_REQUESTS[name]
    before = list_stacks_and_buckets(lab)
    answer = http.request(method, path, **options)
    assert (answer.status_code, answer.json()["message"]) == (403, "The request is not signed.")
    assert not [header for header in answer.headers if header.startswith("access-control-")]
    assert list_stacks_and_buckets(lab) == before


def list_stacks_and_buckets(lab: EmulatorLab) -> tuple[list[str], list[str]]:
    stacks = get_client("cloudformation", lab.endpoint).list_stacks()["StackSummaries"]
    buckets = get_client("s3", lab.endpoint).list_buckets()["Buckets"]
    return [stack["StackId"] for stack in stacks], [bucket["Name"] for bucket in buckets]


@pytest.mark.parametrize(
    ("access_key_id", "secret_access_key"),
    [("test", "test"), ("000000000000", "local"), ("", "test"), ("", "another")],
    ids=["MiniStack's", "an account's", "this run's id", "this run's id with another secret"],
)
def test_no_other_key_is_obeyed(emulator: EmulatorProcess, access_key_id: str, secret_access_key: str) -> None:
    credentials = RunCredentials(access_key_id or get_run_credentials().access_key_id, secret_access_key)
    for service, operation in (
        ("dynamodb", "list_tables"),
        ("lambda", "list_functions"),
        ("sts", "get_caller_identity"),
    ):
        client = make_client(make_session(credentials), service, emulator.endpoint)
        with pytest.raises(Exception, match=r"key that is not the one of this run|not the one of this request"):
            getattr(client, operation)()


@pytest.mark.parametrize("headers", BROWSER_HEADERS, ids=str)
def test_a_signed_request_of_a_browser_does_nothing(emulator: EmulatorProcess, headers: dict[str, str]) -> None:
    dynamodb = make_client(make_session(get_run_credentials()), "dynamodb", emulator.endpoint)
    assert dynamodb.list_tables()
    dynamodb.meta.events.register("before-send", lambda request, **_: request.headers.update(headers))
    with pytest.raises(ClientError, match="not web pages"):
        dynamodb.list_tables()


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_it_answers_under_its_own_name_and_port_only(http: httpx.Client, host: str) -> None:
    name = host.format(port=http.base_url.port)
    headers = {"host": name} | sign_run_request(get_run_credentials(), "GET", name, "/_fermata/processes")
    answer = http.get("/_fermata/processes", headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (
        403,
        "This server is asked under a name that is not its own.",
    )


def test_its_own_pages_and_the_deployed_api_answer_what_is_signed(http: httpx.Client) -> None:
    assert http.get("/_fermata/processes", auth=RunSignature()).status_code == 200
    assert http.get("/_ministack/health", auth=RunSignature()).status_code == 200
    assert http.get("/restapis/none/local/_user_request_/x", auth=RunSignature()).status_code == 404


def test_a_body_that_differs_from_the_signed_one_does_nothing(emulator: EmulatorProcess) -> None:
    dynamodb = make_client(make_session(get_run_credentials()), "dynamodb", emulator.endpoint)
    dynamodb.meta.events.register("before-send", lambda request, **_: setattr(request, "body", b'{"Limit": 1}'))
    with pytest.raises(ClientError, match="not the one of this request"):
        dynamodb.list_tables(Limit=2)


def test_functions_have_the_key_of_this_run(lab: EmulatorLab) -> None:
    environment = lab.invoke_function("lab", {})[0]["environment"]
    assert environment["AWS_ACCESS_KEY_ID"] == get_run_credentials().access_key_id
    assert environment["AWS_SECRET_ACCESS_KEY"] == get_run_credentials().secret_access_key


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads the kernel's list of processes")
def test_the_secret_is_on_no_command_line(emulator: EmulatorProcess, lab: EmulatorLab) -> None:
    lab.invoke_function("lab", {})
    secret = get_run_credentials().secret_access_key
    pids = [emulator.pid, *(process["pid"] for process in emulator.list_function_processes()["lab"])]
    for pid in pids:
        assert secret not in Path(f"/proc/{pid}/cmdline").read_text()


def test_an_emulator_that_nobody_could_ask_does_not_start() -> None:
    environment = {name: value for name, value in inherited_environment().items() if name != CREDENTIALS_VARIABLE}
    done = subprocess.run(
        [str(EMULATOR_PYTHON), "-m", "local.emulator"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"{CREDENTIALS_VARIABLE} is missing" in done.stderr
