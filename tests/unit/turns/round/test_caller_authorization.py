"""The Authorization header of a user reaches the remote tools that are registered to receive it, and nothing else."""

import json
from collections.abc import Iterator

import pytest

from fermata.domain.caller import Caller
from fermata.remote_tools.tool_registry import ToolChange, change_tool, register_tool
from fermata.turns.turn import load_turn, turn_from_item, turn_to_item
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.stored_rows import read_partition
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
AUTHORIZATION = f"Bearer {TOKEN}"


@pytest.fixture
def vendor() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    made = staged(fermata_stage="local")
    make_tenant(made.resources, "bakery")
    return made


def register(stage: Stage, vendor: ScriptedToolServer, *, forwards: bool, replace: bool = False) -> None:
    headers = {"authorization": "Bearer of-the-tenant"}
    register_tool(
        stage.resources,
        ADMIN,
        make_manifest_json(),
        vendor.url,
        headers=headers,
        forwards_authorization=forwards,
        replace=replace,
    )


def call_tool(stage: Stage, authorization: str = AUTHORIZATION) -> None:
    stage.start_turn(authorization=authorization)
    run_call(stage)


def run_call(stage: Stage) -> None:
    stage.script_replies(reply_with_calls(tool_call_block("pim_getProduct", sku="1")), "Done.")
    stage.run_workflow()


def test_a_tool_that_asks_for_it_is_sent_the_header_in_place_of_the_tenants(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    register(stage, vendor, forwards=True)
    call_tool(stage)
    assert [call.headers["authorization"] for call in vendor.calls] == [AUTHORIZATION]


def test_no_other_tool_is_sent_it_and_it_is_not_kept(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, forwards=False)
    call_tool(stage)
    assert [call.headers["authorization"] for call in vendor.calls] == ["Bearer of-the-tenant"]
    assert stage.turn.sealed_authorization == b""


def test_a_turn_without_the_header_uses_that_of_the_tenant(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, forwards=True)
    call_tool(stage, authorization="")
    assert [call.headers["authorization"] for call in vendor.calls] == ["Bearer of-the-tenant"]


def test_the_key_of_a_server_and_a_header_that_cannot_be_sealed_are_not_passed_on(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    register(stage, vendor, forwards=True)
    call_tool(stage, authorization="Bearer " + "x" * 4096)
    stage.caller = stage.caller.model_copy(update={"api_key": "key-1"})
    call_tool(stage)
    assert {call.headers["authorization"] for call in vendor.calls} == {"Bearer of-the-tenant"}


def test_a_running_turn_sends_it_to_no_address_that_was_registered_later(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    register(stage, vendor, forwards=True)
    stage.start_turn(authorization=AUTHORIZATION)
    with run_scripted_tool_server() as other:
        register(stage, other, forwards=True, replace=True)
        run_call(stage)
        assert other.calls == []
    assert [call.headers["authorization"] for call in vendor.calls] == [AUTHORIZATION]


def test_it_is_not_sent_after_a_redirect(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, forwards=True)
    with run_scripted_tool_server() as other:
        vendor.script_answer(b"", 307, headers={"Location": other.url})
        call_tool(stage)
        assert other.calls == []


def test_it_is_sealed_in_the_turn_and_is_nowhere_else(
    stage: Stage, vendor: ScriptedToolServer, capsys: pytest.CaptureFixture[str]
) -> None:
    register(stage, vendor, forwards=True)
    vendor.script_answer(f"who is {TOKEN}?".encode(), 403)
    call_tool(stage)
    turn = load_turn(stage.resources, "bakery", stage.turn.id)
    assert turn is not None
    assert turn.sealed_authorization
    assert turn_from_item(turn_to_item(turn), 0) == turn.model_copy(update={"is_listed": True})
    stored = [read_partition(table, pk) for table, pk in list_partitions(stage)]
    assert TOKEN not in json.dumps(stored, default=repr)
    assert TOKEN not in repr([turn, stage.driver.requests]) + capsys.readouterr().out


def list_partitions(stage: Stage) -> list[tuple[str, str]]:
    settings = stage.resources.settings
    conversation = f"t#bakery#c#{stage.conversation.id}"
    return [
        (settings.bridges_table, stage.turn.pk),
        (settings.conversations_table, conversation),
        (settings.settings_table, "t#bakery"),
    ]


def test_a_change_of_the_tool_keeps_the_choice_and_a_replacement_makes_it_again(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    register(stage, vendor, forwards=True)
    changed = change_tool(stage.resources, ADMIN, "pim.getProduct", ToolChange(headers={"x-key": "k"}))
    assert changed.view["forwardAuthorization"] is True
    call_tool(stage)
    register(stage, vendor, forwards=False, replace=True)
    call_tool(stage)
    assert [call.headers.get("authorization") for call in vendor.calls] == [AUTHORIZATION, "Bearer of-the-tenant"]
