"""Manage credentials, defaults and conversations with the command line, as an operator does."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from fermata.aws.blob_store import conversation_folder
from fermata.aws.dynamodb_items_and_writes import Update
from fermata.conversations import message_store
from fermata.domain.agent_ids import SCOPES
from fermata_client.cli import main
from local.cloud import LocalCloud
from tests.e2e.chat_session import open_http
from tests.e2e.deployment_parameters import function_folders
from tests.e2e.stream_reader import API_PREFIX
from tests.fixed_response_server import run_fixed_response_server
from tests.images import make_image, to_base64
from tests.tenant_tokens import make_tenant

KEY = "sk-ant-keeping-canary-6f02"
AT_ONCE = 5


@pytest.fixture(scope="module")
def token(cloud: LocalCloud) -> str:
    """A token of a new tenant."""
    return make_tenant(cloud.resources(), "keeper", issuer="http://127.0.0.1/keeper").sign_token("ada")


@pytest.fixture
def fermata(cloud: LocalCloud, token: str) -> Callable[..., Result]:
    def run(*arguments: str, typed: str = "") -> Result:
        where = {"FERMATA_URL": cloud.url, "FERMATA_TOKEN": token}
        return CliRunner().invoke(main, list(arguments), input=typed, env=where)

    return run


def parse_output(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_credential_is_created_tested_made_default_changed_and_removed(fermata: Callable[..., Result]) -> None:
    mine = fermata("credentials", "add", "anthropic", "--label", "Mine", typed=KEY).stdout.strip()
    seeded = {"credentialId": mine, "modelId": "fermata-demo"}
    assert parse_output(fermata("defaults", "show", "--json")) == dict.fromkeys(SCOPES, seeded)
    assert "opens 1 model." in fermata("credentials", "test", mine).stdout
    assert [model["id"] for model in parse_output(fermata("models", "--json"))] == ["fermata-demo"]
    assert fermata("credentials", "change", mine, "--label", "Ours", "--new-key", typed=KEY + "-2").exit_code == 0
    refused = fermata("credentials", "delete", mine, "--yes")
    assert "the default of site, content, data, plugin" in refused.stderr
    for scope in SCOPES:
        assert fermata("defaults", "clear", scope).exit_code == 0
    assert fermata("credentials", "delete", mine, "--yes").exit_code == 0
    assert parse_output(fermata("credentials", "list", "--json")) == []


def test_a_conversation_is_listed_shown_renamed_and_deleted(fermata: Callable[..., Result]) -> None:
    mine = fermata("credentials", "add", "anthropic", "--label", "Talking", typed=KEY).stdout.strip()
    assert fermata("defaults", "set", "data", mine, "fermata-demo").exit_code == 0
    assert fermata("chat", "What can you do?").exit_code == 0
    [listed] = parse_output(fermata("conversations", "list", "--json"))
    assert (listed["scope"], listed["title"], listed["contextTokens"] > 0) == ("data", "What can you do?", True)
    assert "> What can you do?" in fermata("conversations", "show", listed["id"]).stdout.splitlines()
    assert fermata("conversations", "rename", listed["id"], "First steps").exit_code == 0
    assert "First steps" in fermata("conversations").stdout
    assert fermata("conversations", "delete", listed["id"], "--yes").exit_code == 0
    assert parse_output(fermata("conversations", "list", "--json")) == []
    assert fermata("conversations", "show", listed["id"]).exit_code == 1


@pytest.fixture
def bare(cloud: LocalCloud, token: str) -> Iterator[httpx.Client]:
    with open_http(cloud, token) as client:
        yield client


def test_of_concurrent_credentials_with_the_same_label_one_is_created(bare: httpx.Client) -> None:
    new = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Contested", "apiKey": KEY}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(bare.post, "/credentials", json=new) for _ in range(AT_ONCE)]
        statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [201] + [409] * (AT_ONCE - 1)
    labels = [one["displayLabel"] for one in bare.get("/credentials").json()["credentials"]]
    assert labels.count("Contested") == 1


def test_a_key_that_a_provider_repeats_is_not_shown(bare: httpx.Client) -> None:
    with run_fixed_response_server() as provider:
        provider.status, provider.body = 500, json.dumps({"error": {"message": f"{KEY} is odd"}}).encode()
        new = {"providerId": "openai-compatible", "authMode": "baseUrl", "displayLabel": "Odd", "baseUrl": provider.url}
        mine = bare.post("/credentials", json=new | {"apiKey": KEY}).json()["credential"]["id"]
        tried = bare.post(f"/credentials/{mine}/test")
        listed = bare.get("/providers/openai-compatible/models", params={"credentialId": mine})
    assert (tried.status_code, tried.json()["ok"], "[redacted] is odd" in tried.json()["error"]) == (200, False, True)
    assert (listed.status_code, "[redacted] is odd" in listed.json()["error"]) == (503, True)


def test_a_redirect_of_a_provider_is_not_followed(bare: httpx.Client) -> None:
    with run_fixed_response_server() as inside, run_fixed_response_server() as provider:
        provider.status, provider.location = 307, inside.url
        new = {
            "providerId": "openai-compatible",
            "authMode": "baseUrl",
            "displayLabel": "Away",
            "baseUrl": provider.url,
        }
        mine = bare.post("/credentials", json=new).json()["credential"]["id"]
        assert bare.post(f"/credentials/{mine}/test").json()["ok"] is False
        assert provider.request_count > 0
        assert inside.request_count == 0


def test_a_month_after_its_deletion_a_conversation_is_purged_with_its_images(
    cloud: LocalCloud, bare: httpx.Client
) -> None:
    new = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Seeing", "apiKey": KEY}
    key = bare.post("/credentials", json=new).json()["credential"]["id"]
    picked = {"scope": "data", "credentialId": key, "modelId": "fermata-demo"}
    made = bare.post("/conversations", json=picked).json()["conversation"]["id"]
    image = {"kind": "image", "mimeType": "image/jpeg", "data": to_base64(make_image(40, 30))}
    asked = bare.post("/chat/data", json={"conversationId": made, "content": [image]})
    assert asked.text.rstrip().endswith("}")
    [message, *_] = bare.get(f"/conversations/{made}").json()["conversation"]["messages"]
    seen = bare.get(message["content"][0]["url"].removeprefix(API_PREFIX))
    assert (seen.status_code, seen.headers["content-type"]) == (200, "image/jpeg")
    assert (seen.headers["x-content-type-options"], seen.headers["cache-control"]) == ("nosniff", "private, no-store")
    assert bare.delete(f"/conversations/{made}").json() == {"ok": True}
    assert bare.get(message["content"][0]["url"].removeprefix(API_PREFIX)).status_code == 404
    assert cloud.invoke_function("purge", {"v": 1})["purged"] == 0
    assert len(left(cloud, made)) > 2
    resources = cloud.resources()
    month_ago = resources.clock.now_iso(-31 * 86_400)
    table, place = resources.settings.conversations_table, message_store.conversation_partition("keeper", made)
    resources.tables.write_items(Update(table, place, "meta", "SET gsk = :ago, deleted_at = :ago", {":ago": month_ago}))
    assert cloud.invoke_function("purge", {"v": 1})["purged"] == 1
    assert left(cloud, made) == []


def left(cloud: LocalCloud, conversation: str) -> list[str]:
    """List the sort keys of a conversation's rows and the keys of its blobs."""
    resources = cloud.resources()
    stored = resources.tables.query_sort_keys(
        resources.settings.conversations_table, message_store.conversation_partition("keeper", conversation)
    )
    folder = conversation_folder("keeper", conversation)
    found = cloud.get_client("s3").list_objects_v2(Bucket=cloud.get_output("BucketName"), Prefix=folder)
    return [*stored, *(entry["Key"] for entry in found.get("Contents", []))]


def test_no_key_is_stored_or_logged_in_the_clear(cloud: LocalCloud) -> None:
    """After the tests above, look through all tables, the bucket and the logs."""
    database, bucket = cloud.get_client("dynamodb"), cloud.get_client("s3")
    stored = [
        str(page["Items"])
        for name in ("Conversations", "Bridges", "Pricing", "Usage", "Settings")
        for page in database.get_paginator("scan").paginate(TableName=cloud.get_output(f"{name}TableName"))
    ]
    assert "Talking" in "".join(stored), "there is something to look through"
    for page in bucket.get_paginator("list_objects_v2").paginate(Bucket=cloud.get_output("BucketName")):
        for entry in page.get("Contents", []):
            found = bucket.get_object(Bucket=cloud.get_output("BucketName"), Key=entry["Key"])["Body"].read()
            stored.append(found.decode("utf-8", "replace"))
    lines = [line for name in function_folders() for line in cloud.read_log_lines(name)]
    assert [text[:500] for text in stored + lines if KEY in text] == []


AGENTS = """
agents:
  - id: helper
    type: ClaudeAgent
    connectionId: claude
    properties:
      model: fermata-demo
      instructions: {_payload: {key: sharedState.rules, default: Help.}}
      fileSystem: {basePath: book}
connections:
  - {id: claude, type: Anthropic, properties: {apiKey: {_secret: DEMO_KEY}}}
tests:
  - {agentId: helper, prompt: What can you do?}
  - {agentId: helper, prompt: What can you do?, expect: {contains: [no such words], tools: [read-file]}}
"""


def test_agents_are_pushed_asked_tested_and_removed(
    fermata: Callable[..., Result], tmp_path: Path, cloud: LocalCloud, token: str
) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "menu.md").write_text("Bread")
    assert fermata("secrets", "set", "DEMO_KEY", typed=KEY).exit_code == 0
    assert fermata("agents", "diff", str(tmp_path)).stdout == "helper added\n"
    assert fermata("agents", "push", str(tmp_path)).exit_code == 0
    assert fermata("agents", "push", str(tmp_path)).exit_code == 3
    assert [one["id"] for one in parse_output(fermata("agents", "list", "--json"))["agents"]] == ["helper"]
    answered = fermata("chat", "--scope", "agent:helper", "What can you do?", "--json")
    assert parse_output(answered)["status"] == "done"
    tested = fermata("agents", "test", str(tmp_path), "--json")
    results = json.loads(tested.stdout)["tests"]
    assert (tested.exit_code, [one["ok"] for one in results]) == (1, [True, False])
    assert results[1]["problems"] == [
        "The answer does not contain 'no such words'.",
        "The tool 'read-file' was not called.",
    ]
    body = {"conversationId": json.loads(answered.stdout)["conversationId"], "prompt": "And now?"}
    body["context"] = {"pageId": "p", "sharedState": {"rules": "Rhyme."}}
    with open_http(cloud, token) as http:
        accepted = http.post("/chat/agent%3Ahelper", json=body, headers={"accept": "application/json"})
        assert accepted.status_code == 202, accepted.text
        other_scope = http.post("/chat/agent:nobody", json=body)
        assert (other_scope.status_code, "belongs to scope" in other_scope.text) == (400, True)
    assert fermata("agents", "remove", "helper", "--yes").exit_code == 0
    assert fermata("chat", "--scope", "agent:helper", "Hello").exit_code == 1
    assert KEY not in answered.output + tested.output
