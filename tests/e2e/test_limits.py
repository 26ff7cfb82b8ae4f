"""Test the limits of users and tenants on the local cloud: many requests at once, and a function that is killed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.wire.auth.tenant import TenantLimits
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from tests.e2e.chat_session import INSERT_CALL, ChatSession, open_http
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.tenant_tokens import make_tenant

TENANT = "narrow"
LIMITS = TenantLimits(user_turns_at_once=5, user_readers_at_once=3, user_prompts_per_minute=200)
ASK = {"accept": "application/json"}


@pytest.fixture(scope="module")
def token(resources: LocalResources) -> str:
    signer = make_tenant(resources, TENANT, issuer=f"http://127.0.0.1/{TENANT}", limits=LIMITS)
    everything = (*CAPABILITIES, *EDITOR_CAPABILITIES)
    caller = Caller(tenant=TENANT, user="ada", capabilities=frozenset(everything))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "site", credential.id, "fermata-demo")
    return signer.sign_token("ada", everything)


@pytest.fixture
def session(cloud: LocalCloud, resources: LocalResources, model: DemoModelClient, token: str) -> Iterator[ChatSession]:
    made = ChatSession(cloud, resources, model, token, tenant=TENANT)
    yield made
    made.close()


def start_at_once(session: ChatSession, prompt: str, times: int) -> list[httpx.Response]:
    """Start turns at once, each in a conversation of its own."""
    conversations = [str(session.client.create_conversation("site")["id"]) for _ in range(times)]
    with open_http(session.cloud, session.token) as http, ThreadPoolExecutor(times) as pool:
        bodies = [{"conversationId": conversation, "prompt": prompt} for conversation in conversations]
        return list(pool.map(lambda body: http.post("/chat/site", json=body, headers=ASK), bodies))


def list_leases(resources: Resources) -> list[str]:
    """Return the turns that count for the tenant and for its user."""
    counting, start = [], None
    while True:
        rows, start = resources.tables.scan_page(resources.settings.bridges_table, start)
        counting += [row for row in rows if row["pk"].startswith(f"t#{TENANT}#limits#") and row["sk"] == "counts"]
        if start is None:
            return sorted(name for row in counting for name in row if name.startswith("x#"))


def test_of_fifty_prompts_at_once_as_many_become_turns_as_may_run(session: ChatSession) -> None:
    prompt = session.scripted_prompt(tool_call_step(INSERT_CALL), text_step("Done."), by="round")
    answers = start_at_once(session, prompt, 50)
    started = [answer.json()["bridgeId"] for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code != 202]
    assert len(started) == 5
    assert {answer.status_code for answer in refused} == {429}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert all("as may run at once (5)" in answer.json()["error"] for answer in refused)
    assert list_leases(session.resources) == sorted(f"x#{turn}" for turn in started * 2)
    for session.bridge in started:
        assert session.cancel_turn().status_code == 200
    assert list_leases(session.resources) == []
    assert start_at_once(session, prompt, 1)[0].status_code == 202


def test_readers_beyond_the_limit_are_refused_until_one_leaves(session: ChatSession) -> None:
    first = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    readers = [first, *(session.open_reader() for _ in range(2))]
    for reader in readers:
        reader.wait_for_event("toolRequest")
    with open_http(session.cloud, session.token) as http:
        refused = http.get(f"/bridges/{session.bridge}/events")
    assert refused.status_code == 429
    assert "as many connections as you may have at once (3)" in refused.json()["error"]
    session.cancel_turn()
    for reader in readers:
        assert reader.wait_for_end()[-1]["type"] == "cancelled"
    assert session.run_turn(text_step("Again.")).status == "done"
