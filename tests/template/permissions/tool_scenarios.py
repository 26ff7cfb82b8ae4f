"""Ask content systems, remote tools, agents, hooks and webhooks of tenants, with the permissions of each function."""

from typing import Any

import pytest

from fermata.agents.definitions.definition_store import get_definition_view, remove_agent, replace_agents
from fermata.agents.definitions.tenant_secrets import remove_secret, set_secret
from fermata.aws.resources import Resources
from fermata.hosts import registry
from fermata.remote_tools.tool_registry import ToolChange, change_tool, list_registered_tools, register_tool
from fermata.signed_requests.signature import sign_request
from fermata.turns.answer.submit_remote_result import RemoteResult, submit_remote_result
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.outbox import resend_outbox
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.redeliver_event import list_webhook_deliveries, redeliver_event
from fermata.webhooks.webhook_registry import add_webhook
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_host import scripted_host
from tests.scripted_tool_server import run_scripted_tool_server
from tests.template.permission_guard import NeededPermission
from tests.template.permissions.guarded_stage import (
    LARGE,
    StageOf,
    may_also_approve,
    record_messages,
    run_locally_without_queue,
    with_settings,
)
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import reply_with_calls, tool_call_block


def test_a_round_requests_the_tenants_own_content_system(
    resources: Resources, at: StageOf, functions: dict[str, Any]
) -> None:
    make_tenant(resources_of_new_process(resources), functions["stage"].caller.tenant)
    here = resources.settings.model_copy(update={"fermata_stage": "local"})
    functions["round"] = with_settings(functions["round"], here)
    with scripted_host() as host:
        host.script_response("GET tables", {"tables": []})
        registry.register_host(Resources(here, resources.clock), functions["stage"].caller.tenant, host.url)
        at("stream_turns").start_turn()
        at("round").script_replies(reply_with_calls(tool_call_block("list_post_types")), "None.")
        assert at("round").run_workflow() == "finished"
        assert [request.path for request in host.requests] == ["tables"]
    assert NeededPermission("kms:Decrypt", "Key", "host-secret") in functions["round"].guard.requested


def test_a_remote_tool_is_registered_called_and_sends_its_result_later(
    resources: Resources, at: StageOf, functions: dict[str, Any], clock: TestClock
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, tools = functions["stage"].caller, functions["credentials"]
    for function in ("credentials", "round"):
        here = functions[function].settings.model_copy(update={"fermata_stage": "local"})
        object.__setattr__(functions[function], "settings", here)
    with run_scripted_tool_server() as vendor:
        vendor.script_answer({}, 202)
        stored = register_tool(tools, caller, make_manifest_json(), vendor.url, forwards_authorization=True)
        secret = stored.signing_secret or ""
        change_tool(tools, caller, "pim.getProduct", ToolChange(headers={"x-api-key": "k"}))
        clock.advance(tools.settings.turn_lifetime_seconds + 1)
        change_tool(tools, caller, "pim.getProduct", ToolChange(enabled=True))
        assert list_registered_tools(tools, caller.tenant)
        turn = at("stream_turns").start_turn(authorization="Bearer x")
        at("round").script_replies(reply_with_calls(tool_call_block("pim.getProduct")), "Done.")
        assert at("round").run_workflow() == "waiting"
    body = b"{}"
    headers = sign_request([secret], "msg_1", clock.time(), body)
    result = RemoteResult(caller.tenant, turn.id, "1.0.remote", {"title": "Bread"})
    submit_remote_result(functions["tool_result"], result, headers, body)
    assert at("round").run_workflow() == "finished"


def test_an_agent_of_a_tenant_is_pushed_and_asked(resources: Resources, at: StageOf, functions: dict[str, Any]) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = functions["stage"].caller, functions["credentials"]
    set_secret(settings, caller, "ANTHROPIC_KEY", "sk-ant-secret")
    replace_agents(settings, caller, {"helper": make_definition()})
    assert get_definition_view(settings, caller.tenant, "helper")
    turn = start_agent_turn(at("stream_turns"), "helper")
    at("round").script_replies("Done.")
    assert at("round").run_workflow() == "finished"
    for function in ("tool_result", "recover", "deliver_webhooks"):
        assert open_turn_agent(functions[function], turn).id == "helper"
    remove_agent(settings, caller, "helper")
    remove_secret(settings, caller, "ANTHROPIC_KEY")


def test_webhooks_are_registered_told_and_answer(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = may_also_approve(functions["stage"].caller), functions["credentials"]
    sent = record_messages(monkeypatch)
    run_locally_without_queue(functions)
    with run_scripted_tool_server() as receiver:
        receiver.script_answer({"result": {"ok": True, "data": LARGE}})
        webhook = add_webhook(settings, caller, receiver.url, (), may_answer=True).view["id"]
        at("stream_turns").start_turn()
        at("round").script_replies(
            reply_with_calls(*(tool_call_block("insertHtml", parentId="root", html=LARGE) for _ in range(2))), "Done."
        )
        assert at("round").run_workflow() == "waiting"
        for _ in range(2):
            deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(sent.pop()))
        assert at("round").run_workflow() == "finished"
        [delivery, *_] = list_webhook_deliveries(settings, caller, webhook)
        redeliver_event(settings, caller, webhook, delivery["id"])
    assert resend_outbox(functions["recover"]) == 0


def test_hooks_of_an_agent_are_called_while_a_turn_runs_and_before_it_ends(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    sent = record_messages(monkeypatch)
    run_locally_without_queue(functions)
    with run_scripted_tool_server() as server:
        definition = make_definition(
            credential=functions["stage"].credential.id,
            hooks={"onStart": ["log"], "onFinish": ["log"]},
            endpoints={"log": {"id": "log", "url": server.url, "headers": {"x-key": {"_secret": "KEY"}}}},
        )
        caller = functions["stage"].caller
        push_definitions(resources_of_new_process(resources), caller, definition)
        set_secret(resources_of_new_process(resources), caller, "KEY", "hook-secret")
        start_agent_turn(at("stream_turns"), "helper")
        at("round").script_replies(LARGE)
        assert at("round").run_workflow() == "finished"
        start_agent_turn(at("stream_turns"), "helper")
        at("stream_turns").cancel_turn()
        for message in sent:
            deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(message))
    paths = [call.headers["idempotency-key"].partition("/")[2] for call in server.calls]
    assert sorted(set(paths)) == ["finish/log", "start/log"]
    assert {call.headers["x-key"] for call in server.calls} == {"hook-secret"}
