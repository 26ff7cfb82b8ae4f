"""A page of another origin changes nothing on this machine and reads nothing, however it asks."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Page

from local.cloud import LocalCloud
from local.signed_pages import RunSignature
from tests.browser.hostile_page import Attack, ReadResponse, attack_from, rebind, serve_page

FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Code": {"ZipFile": "def handler(event, context): pass"},
        "Handler": "index.handler",
        "Runtime": "python3.12",
        "Role": "arn:aws:iam::000000000000:role/x",
    },
}
CREATE_STACK = urlencode(
    {
        "Action": "CreateStack",
        "Version": "2010-05-15",
        "StackName": "evil",
        "TemplateBody": json.dumps({"Resources": {"Function": FUNCTION}}),
    }
)
FORM = {"content-type": "application/x-www-form-urlencoded"}
API = "/admin/api/ai"
SCRIPT_OF_THE_MODEL = json.dumps({"key": "evil", "steps": [{"text": "evil"}], "repeatLast": True})
PUBLIC_PATHS = ("/version", "/healthz", "/openapi.json")
"""Of the front door: what any origin may read, and errors that the gateway makes itself (decision 0010)."""


@pytest.fixture(scope="module")
def hostile_port() -> Iterator[int]:
    with serve_page() as port:
        yield port


def emulator_attacks(url: str, cloud: LocalCloud) -> list[Attack]:
    function = cloud.function_name("recover")
    return [
        Attack("GET", f"{url}/?{CREATE_STACK}"),
        Attack("POST", f"{url}/", CREATE_STACK, FORM),
        Attack("POST", f"{url}/", '{"TableName":"evil"}', {"x-amz-target": "DynamoDB_20120810.ListTables"}),
        Attack("POST", f"{url}/2015-03-31/functions/{function}/invocations", "{}"),
        Attack("PUT", f"{url}/evil-bucket"),
        Attack("POST", f"{url}/_ministack/reset"),
        Attack("GET", f"{url}/_ministack/health"),
        Attack("POST", f"{url}/_fermata/requests"),
        Attack("GET", f"{url}/_fermata/processes"),
        Attack("GET", f"{url}/_fermata/appends"),
        Attack("GET", f"{url}/latest/meta-data/iam/security-credentials/x"),
        Attack("GET", f"{url}/restapis/{cloud.get_output('ApiId')}/local/_user_request_{API}/conversations"),
    ]


def front_door_attacks(url: str) -> list[Attack]:
    return [
        Attack("GET", f"{url}{API}/conversations"),
        Attack("POST", f"{url}{API}/conversations", '{"scope":"site"}', {"authorization": "Bearer x"}),
        Attack("POST", f"{url}{API}/chat/site", '{"prompt":"Hello"}'),
        Attack("GET", f"{url}{API}/credentials"),
        Attack("PUT", f"{url}/_bucket/fermata/uploads/local/x", "evil"),
        Attack("GET", f"{url}/nowhere"),
    ]


def demo_attacks(cloud: LocalCloud, model_url: str, host_url: str) -> list[Attack]:
    question = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"x-api-key": "demo", "anthropic-version": "2023-06-01"}
    return [
        Attack("POST", f"{model_url}/demo/script", SCRIPT_OF_THE_MODEL),
        Attack("DELETE", f"{model_url}/demo/requests"),
        Attack("GET", f"{model_url}/demo/requests"),
        Attack("POST", f"{model_url}/v1/messages", json.dumps(question), headers),
        Attack("GET", f"{model_url}/v1/models"),
        Attack("GET", f"{host_url}/demo/acts"),
        Attack("GET", f"{host_url}/users"),
        Attack("POST", f"{host_url}/plugins/seo/activate", "{}", {"idempotency-key": "evil"}),
    ]


def read_state(cloud: LocalCloud) -> dict[str, Any]:
    """Read what an attack could have changed."""
    assert cloud.model is not None
    options: dict[str, Any] = {"auth": RunSignature(), "trust_env": False}
    resources = cloud.resources().settings
    tables = (resources.conversations_table, resources.bridges_table, resources.settings_table)
    dynamodb, s3 = cloud.get_client("dynamodb"), cloud.get_client("s3")
    buckets = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    return {
        "stacks": [stack["StackName"] for stack in cloud.get_client("cloudformation").list_stacks()["StackSummaries"]],
        "functions": sorted(one["FunctionName"] for one in cloud.get_client("lambda").list_functions()["Functions"]),
        "tables": sorted(dynamodb.list_tables()["TableNames"]),
        "items": {table: dynamodb.scan(TableName=table, Select="COUNT")["Count"] for table in tables},
        "objects": {name: s3.list_objects_v2(Bucket=name)["KeyCount"] for name in buckets},
        "asked": httpx.get(f"{cloud.model.url}/demo/requests", **options).json(),
        "acts": httpx.get(f"{cloud.host_url}/demo/acts", **options).json(),
        "recorded": httpx.get(f"{cloud.endpoint}/_fermata/requests", **options).json(),
    }


def is_secret(read: ReadResponse, front_door: str) -> bool:
    """Return whether a page should not have read a response: all but errors of the front door's own gateway."""
    is_error = read.text.startswith(("401 ", "403 ", "404 ", "421 "))
    return not (is_error and read.url.startswith(front_door))


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_of_another_origin_changes_and_reads_nothing(
    page: Page, cloud: LocalCloud, hostile_port: int, name: str
) -> None:
    assert cloud.model is not None
    before = read_state(cloud)
    attacks = [
        *emulator_attacks(cloud.endpoint, cloud),
        *front_door_attacks(cloud.url),
        *demo_attacks(cloud, cloud.model.url, cloud.host_url),
    ]
    read = attack_from(page, f"http://{name}:{hostile_port}/", attacks)
    assert [one for one in read if is_secret(one, cloud.url)] == []
    assert read_state(cloud) == before


def test_a_page_whose_name_leads_to_a_server_of_this_machine_changes_and_reads_nothing(
    page: Page, cloud: LocalCloud
) -> None:
    """DNS rebinding: for the browser, the server is a part of the page's site."""
    assert cloud.model is not None
    before = read_state(cloud)
    for url in (cloud.endpoint, cloud.url, cloud.model.url, cloud.host_url):
        rebound = f"http://evil.example:{urlsplit(url).port}"
        attacks = {
            cloud.endpoint: lambda at: emulator_attacks(at, cloud),
            cloud.url: front_door_attacks,
            cloud.model.url: lambda at: demo_attacks(cloud, at, "http://evil.example:1"),
            cloud.host_url: lambda at: demo_attacks(cloud, "http://evil.example:1", at),
        }[url](rebound)
        read = attack_from(page, rebind(page, rebound), attacks)
        assert read, "a page reads refusals under its own name"
        assert [one for one in read if not _is_refusal(one)] == []
    assert read_state(cloud) == before


def _is_refusal(read: ReadResponse) -> bool:
    """Return whether a page has read that it is refused, which is no secret."""
    texts = ("under a name that is not its own", "does not answer under the name", "programs on this machine")
    return any(text in read.text for text in texts)
