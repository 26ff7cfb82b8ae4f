"""Test turns that call the tenant's content system: the demo host, and a scripted one that fails."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.hosts import registry
from fermata_client import run_turn
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from local.signed_pages import RunSignature
from tests.e2e import turn_checks
from tests.e2e.chat_session import ChatSession, result_text
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.e2e.stream_reader import Event
from tests.e2e.test_attempts import invocation_payload
from tests.scripted_host import ScriptedHost, scripted_host
from tests.tenant_tokens import make_tenant
from tests.waiting import wait_until

EVERYTHING = (*CAPABILITIES, *EDITOR_CAPABILITIES)
ACTIVATE = ("plugin_activate", {"localId": "seo"})
ACTIVATED = {"activated": True, "pluginId": "bakery.seo", "version": "2.0.0"}


@pytest.fixture
def in_scope(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient
) -> Iterator[Callable[[str], ChatSession]]:
    """Make sessions of the local tenant, whose host is the demo host."""
    made: list[ChatSession] = []

    def make(scope: str) -> ChatSession:
        made.append(ChatSession(cloud, resources, model, cloud.token, scope=scope))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running


@pytest.fixture(scope="module")
def workshops_token(resources: LocalResources, scripted: ScriptedHost) -> str:
    """A token of a tenant whose host is scripted by the test."""
    signer = make_tenant(resources, "workshop", issuer="http://127.0.0.1/workshop")
    registry.register_host(resources, "workshop", scripted.url)
    caller = Caller(tenant="workshop", user="ada", capabilities=frozenset(EVERYTHING))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "plugin", credential.id, "fermata-demo")
    return signer.sign_token("ada", EVERYTHING)


@pytest.fixture
def workshop(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient, workshops_token: str, scripted: ScriptedHost
) -> Iterator[ChatSession]:
    scripted.script.clear()
    scripted.requests.clear()
    session = ChatSession(cloud, resources, model, workshops_token, tenant="workshop", scope="plugin")
    yield session
    session.close()


def test_a_title_is_changed_in_the_document_that_the_host_names(
    in_scope: Callable[[str], ChatSession],
) -> None:
    session, written = in_scope("content"), []

    def act(request: Event) -> dict[str, Any]:
        written.append((request["toolName"], request["input"]))
        return {"ok": True}

    prompt = "Change the title of “Our new flour” to “Flour from the mill”"
    outcome = run_turn(session.client, "content", prompt, conversation_id=session.conversation, executor=act)
    session.bridge = str(outcome.view.bridge_id)
    assert outcome.status == "done", outcome.error
    assert [badge.name for badge in outcome.view.tool_calls] == [
        "list_collections",
        "search_documents",
        "get_document",
        "set_document_field",
    ]
    assert all(badge.state == "ok" for badge in outcome.view.tool_calls)
    given = {"documentId": "doc-flour", "fieldId": "title", "value": "Flour from the mill"}
    assert written == [("set_document_field", given)]
    assert turn_checks.check_turn(session) == outcome.view


def test_the_open_document_is_read_from_the_editors_snapshot(in_scope: Callable[[str], ChatSession]) -> None:
    session = in_scope("content")
    shown = {"id": "doc-flour", "tableId": "tbl-posts", "title": "Not saved yet", "fields": {"body": "Typed just now."}}
    session.run_turn(
        tool_call_step(("get_document", {"documentId": "doc-flour"})),
        text_step("Read."),
        snapshot=lambda: {"collections": [], "activeDocument": shown},
    )
    read = json.loads(result_text(session.tool_results()[0]))
    assert read["document"]["fields"] == {"body": "Typed just now."}
    assert read["document"]["createdAt"] == "2026-04-05T08:00:00Z"
    assert "unsaved changes included" in read["note"]
    turn_checks.check_turn(session)


def test_a_plugin_is_activated_once_per_idempotency_key(
    in_scope: Callable[[str], ChatSession], cloud: LocalCloud
) -> None:
    session = in_scope("plugin")
    session.run_turn(tool_call_step(("plugin_activate", {"localId": "opening-hours"})), text_step("It is active."))
    assert json.loads(result_text(session.tool_results()[0]))["upgrade"] == {"from": "1.0.0", "to": "1.1.0"}
    acts = httpx.get(f"{cloud.host_url}/demo/acts", auth=RunSignature(), trust_env=False).json()["acts"]
    assert acts == [{"key": f"{session.bridge}/1/0", "plugin": "opening-hours", "asked": 1}]
    turn_checks.check_turn(session)


def test_a_round_delivered_twice_while_a_plugin_is_activated_activates_it_once(
    workshop: ChatSession, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.script_response("POST plugins/seo/activate", ACTIVATED, completed_by=answered)
    reader = workshop.start_turn(tool_call_step(ACTIVATE), text_step("It is active."))
    wait_until(lambda: scripted.requests, "the content system is asked")
    assert cloud.invoke_function("round", invocation_payload(workshop, "2000-01-01T00:00:00.000Z")) is None
    answered.set()
    reader.wait_for_end()
    assert [asked.headers["idempotency-key"] for asked in scripted.requests] == [f"{workshop.bridge}/1/0"]
    assert json.loads(result_text(workshop.tool_results()[0])) == ACTIVATED | {"skipped": False}
    turn_checks.check_turn(workshop, reader)


def test_killed_while_a_plugin_is_activated_the_round_does_not_activate_it_again(
    workshop: ChatSession, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.script_response("POST plugins/seo/activate", ACTIVATED, completed_by=answered)
    reader = workshop.start_turn(tool_call_step(ACTIVATE), text_step("I have to check first."))
    wait_until(lambda: scripted.requests, "the content system is asked")
    assert cloud.kill_workers("round") >= 1
    answered.set()
    reader.wait_for_end()
    assert len(scripted.requests) == 1
    assert "its outcome is unknown" in result_text(workshop.tool_results()[0])
    turn_checks.check_turn(workshop, reader)


def test_killed_during_a_read_of_the_host_the_read_is_repeated(
    workshop: ChatSession, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.script_response("GET plugins", {"plugins": []}, completed_by=answered)
    scripted.script_response("GET plugins", {"plugins": [{"localId": "seo"}]})
    reader = workshop.start_turn(tool_call_step(("plugin_list_plugins", {}), text="Let me look."), text_step("One."))
    wait_until(lambda: scripted.requests, "the content system is asked")
    assert cloud.kill_workers("round") >= 1
    answered.set()
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types, "what was said and asked for is committed"
    assert len(workshop.model_requests()) == 2
    assert json.loads(result_text(workshop.tool_results()[0]))["sitePlugins"][0]["localId"] == "seo"
    turn_checks.check_turn(workshop, reader)


def test_a_cancel_does_not_wait_for_the_host(workshop: ChatSession, cloud: LocalCloud, scripted: ScriptedHost) -> None:
    answered = threading.Event()
    scripted.script_response("POST plugins/seo/activate", ACTIVATED, completed_by=answered)
    reader = workshop.start_turn(tool_call_step(ACTIVATE), text_step("Never said."))
    wait_until(lambda: scripted.requests, "the content system is asked")
    assert workshop.cancel_turn().status_code == 200
    wait_until(lambda: not cloud.worker_pids("round", busy=True), "the round lets go of it")
    answered.set()
    reader.wait_for_end()
    turn_checks.check_turn(workshop, reader, ends="cancelled")


def test_a_busy_host_is_asked_again(workshop: ChatSession, scripted: ScriptedHost) -> None:
    scripted.script_response("GET plugins", {"error": "busy"}, status=503)
    scripted.script_response("GET plugins", {"plugins": [{"localId": "seo"}]})
    workshop.run_turn(tool_call_step(("plugin_list_plugins", {})), text_step("One."))
    assert json.loads(result_text(workshop.tool_results()[0]))["sitePlugins"][0]["localId"] == "seo"
    assert len(scripted.requests) == 2
    turn_checks.check_turn(workshop)


def test_the_hosts_refusal_reaches_the_model_in_its_own_words(workshop: ChatSession, scripted: ScriptedHost) -> None:
    scripted.script_response("GET plugins", {"error": "Ask the owner for access"}, status=403)
    workshop.run_turn(tool_call_step(("plugin_list_plugins", {})), text_step("I may not see them."))
    assert result_text(workshop.tool_results()[0]).endswith("does not let this user do that: Ask the owner for access.")
    turn_checks.check_turn(workshop)
