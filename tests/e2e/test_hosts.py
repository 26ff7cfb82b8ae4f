"""Turns that ask the tenant's own content system: the demo one of the local cloud, and one that has a bad day."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fermata.credentials import defaults, keyring
from fermata.hosts import registry
from fermata.words.caller import Caller
from fermata_client import run_turn
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR, LocalDesk
from tests.callers import make_tenant
from tests.e2e import checks
from tests.e2e.model import Model, calls, says
from tests.e2e.reader import Event
from tests.e2e.talk import Talk, said
from tests.e2e.test_attempts import wake
from tests.hosts import ScriptedHost, scripted_host
from tests.local.lab import until

EVERYTHING = (*CAPABILITIES, *EDITOR)
ACTIVATE = ("plugin_activate", {"localId": "seo"})
ACTIVATED = {"activated": True, "pluginId": "bakery.seo", "version": "2.0.0"}


@pytest.fixture
def in_scope(cloud: LocalCloud, desk: LocalDesk, model: Model) -> Iterator[Callable[[str], Talk]]:
    """Makes conversations of the local tenant, whose content system is the demo one."""
    made: list[Talk] = []

    def make(scope: str) -> Talk:
        made.append(Talk(cloud, desk, model, cloud.token, scope=scope))
        return made[-1]

    yield make
    for talk in made:
        talk.close()


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running


@pytest.fixture(scope="module")
def workshops_token(desk: LocalDesk, scripted: ScriptedHost) -> str:
    """Of a tenant whose content system does what a test tells it."""
    signer = make_tenant(desk, "workshop", issuer="http://127.0.0.1/workshop")
    registry.register(desk, "workshop", scripted.url)
    caller = Caller(tenant="workshop", user="ada", capabilities=frozenset(EVERYTHING))
    credential = keyring.create(desk, caller, "anthropic", "apiKey", "demo", "demo")
    defaults.set_default(desk, caller, "plugin", credential.id, "fermata-demo")
    return signer.token("ada", EVERYTHING)


@pytest.fixture
def workshop(
    cloud: LocalCloud, desk: LocalDesk, model: Model, workshops_token: str, scripted: ScriptedHost
) -> Iterator[Talk]:
    scripted.script.clear()
    scripted.asked.clear()
    talk = Talk(cloud, desk, model, workshops_token, tenant="workshop", scope="plugin")
    yield talk
    talk.close()


def test_a_title_is_changed_after_the_content_system_was_asked_where_the_document_is(
    in_scope: Callable[[str], Talk],
) -> None:
    talk, written = in_scope("content"), []

    def act(request: Event) -> dict[str, Any]:
        written.append((request["toolName"], request["input"]))
        return {"ok": True}

    prompt = "Change the title of “Our new flour” to “Flour from the mill”"
    outcome = run_turn(talk.client, "content", prompt, conversation_id=talk.conversation, executor=act)
    talk.bridge = str(outcome.view.bridge_id)
    assert outcome.status == "done", outcome.error
    assert [badge.name for badge in outcome.view.tools] == [
        "list_collections",
        "search_documents",
        "get_document",
        "set_document_field",
    ]
    assert all(badge.state == "ok" for badge in outcome.view.tools)
    given = {"documentId": "doc-flour", "fieldId": "title", "value": "Flour from the mill"}
    assert written == [("set_document_field", given)]
    assert checks.sound(talk) == outcome.view


def test_the_open_document_is_read_as_the_editor_shows_it(in_scope: Callable[[str], Talk]) -> None:
    talk = in_scope("content")
    shown = {"id": "doc-flour", "tableId": "tbl-posts", "title": "Not saved yet", "fields": {"body": "Typed just now."}}
    talk.run(
        calls(("get_document", {"documentId": "doc-flour"})),
        says("Read."),
        snapshot=lambda: {"collections": [], "activeDocument": shown},
    )
    read = json.loads(said(talk.results()[0]))
    assert read["document"]["fields"] == {"body": "Typed just now."}
    assert read["document"]["createdAt"] == "2026-04-05T08:00:00Z"
    assert "unsaved changes included" in read["note"]
    checks.sound(talk)


def test_a_plugin_is_activated_once_under_the_key_of_its_call(
    in_scope: Callable[[str], Talk], cloud: LocalCloud
) -> None:
    talk = in_scope("plugin")
    talk.run(calls(("plugin_activate", {"localId": "opening-hours"})), says("It is active."))
    assert json.loads(said(talk.results()[0]))["upgrade"] == {"from": "1.0.0", "to": "1.1.0"}
    acts = httpx.get(f"{cloud.host_url}/demo/acts", trust_env=False).json()["acts"]
    assert acts == [{"key": f"{talk.bridge}/1/0", "plugin": "opening-hours", "asked": 1}]
    checks.sound(talk)


def test_a_round_delivered_twice_while_a_plugin_is_activated_activates_it_once(
    workshop: Talk, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.says("POST plugins/seo/activate", ACTIVATED, hold=answered)
    reader = workshop.start(calls(ACTIVATE), says("It is active."))
    until(lambda: scripted.asked, "the content system is asked")
    assert cloud.invoke("round", wake(workshop, "2000-01-01T00:00:00.000Z")) is None
    answered.set()
    reader.finish()
    assert [asked.headers["idempotency-key"] for asked in scripted.asked] == [f"{workshop.bridge}/1/0"]
    assert json.loads(said(workshop.results()[0])) == ACTIVATED | {"skipped": False}
    checks.sound(workshop, reader)


def test_killed_while_a_plugin_is_activated_the_round_does_not_activate_it_again(
    workshop: Talk, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.says("POST plugins/seo/activate", ACTIVATED, hold=answered)
    reader = workshop.start(calls(ACTIVATE), says("I have to check first."))
    until(lambda: scripted.asked, "the content system is asked")
    assert cloud.kill_workers("round") == 1
    answered.set()
    reader.finish()
    assert len(scripted.asked) == 1
    assert "its outcome is unknown" in said(workshop.results()[0])
    checks.sound(workshop, reader)


def test_killed_while_the_content_system_is_read_it_is_read_again(
    workshop: Talk, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.says("GET plugins", {"plugins": []}, hold=answered)
    scripted.says("GET plugins", {"plugins": [{"localId": "seo"}]})
    reader = workshop.start(calls(("plugin_list_plugins", {}), text="Let me look."), says("One."))
    until(lambda: scripted.asked, "the content system is asked")
    assert cloud.kill_workers("round") == 1
    answered.set()
    reader.finish()
    assert "roundRetracted" not in reader.kinds, "what was said and asked for is committed"
    assert len(workshop.requests()) == 2
    assert json.loads(said(workshop.results()[0]))["sitePlugins"][0]["localId"] == "seo"
    checks.sound(workshop, reader)


def test_a_cancel_does_not_wait_for_the_content_system(
    workshop: Talk, cloud: LocalCloud, scripted: ScriptedHost
) -> None:
    answered = threading.Event()
    scripted.says("POST plugins/seo/activate", ACTIVATED, hold=answered)
    reader = workshop.start(calls(ACTIVATE), says("Never said."))
    until(lambda: scripted.asked, "the content system is asked")
    assert workshop.cancel().status_code == 200
    until(lambda: not cloud.worker_pids("round", busy=True), "the round lets go of it", seconds=5)
    answered.set()
    reader.finish()
    checks.sound(workshop, reader, ends="cancelled")


def test_a_content_system_that_is_busy_at_first_is_asked_again(workshop: Talk, scripted: ScriptedHost) -> None:
    scripted.says("GET plugins", {"error": "busy"}, status=503)
    scripted.says("GET plugins", {"plugins": [{"localId": "seo"}]})
    workshop.run(calls(("plugin_list_plugins", {})), says("One."))
    assert json.loads(said(workshop.results()[0]))["sitePlugins"][0]["localId"] == "seo"
    assert len(scripted.asked) == 2
    checks.sound(workshop)


def test_what_a_content_system_refuses_is_told_to_the_model_in_its_own_words(
    workshop: Talk, scripted: ScriptedHost
) -> None:
    scripted.says("GET plugins", {"error": "Ask the owner for access"}, status=403)
    workshop.run(calls(("plugin_list_plugins", {})), says("I may not see them."))
    assert said(workshop.results()[0]).endswith("does not let this user do that: Ask the owner for access.")
    checks.sound(workshop)
