"""Every recorded case of a plan that waits, and of a prompt over HTTP, has its right answer under its own id."""

from collections.abc import Mapping
from typing import Any

import pytest

from fermata.conversations.conversation_store import create_conversation
from fermata.domain.caller import Caller
from local.seed import WIDE_LIMITS
from tests.shared_cases.governance_cases import read_governance_cases
from tests.tenant_tokens import make_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.test_planner_chats import PlannerChats, chats
from tests.unit.turns.stage import Stage

__all__ = ["chats"]
CASES = {case["id"]: case for case in read_governance_cases("approval", "http")}


def hold_plan(chats: PlannerChats, case: Mapping[str, Any]) -> None:
    """Let a plan wait, unless the case says that none does."""
    if case["id"] not in ("G235", "G237", "G238"):
        chats.script_plan("Held")
        assert chats.post(message="Show me a plan", executionMode="plan_only").json()["status"] == "plan_ready"


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case["area"] == "approval"])
def test_a_plan_waits_until_it_is_applied_or_discarded(chats: PlannerChats, case: str) -> None:
    given, expected = CASES[case]["input"], CASES[case]["expected"]
    hold_plan(chats, CASES[case])
    if given.get("message") or given["executionMode"] == "plan_only":
        chats.script_plan("Planned")
    answer = chats.post(**({"message": "Change the title"} if case == "G235" else {}), **given)
    assert answer.status_code == expected.get("http_status", 200), answer.text
    status = "applied" if expected.get("behaves_as") == "auto" else expected.get("status", answer.json()["status"])
    assert answer.json()["status"] == status
    assert set(expected.get("has", ())) <= set(answer.json())
    if "applied" in expected:
        assert ("previewVersion" in answer.json()) is expected["applied"]


@pytest.fixture
def limited_requester(stage: Stage) -> Requester:
    """Sends one prompt a minute."""
    limits = WIDE_LIMITS.model_copy(update={"user_prompts_per_minute": 1})
    return Requester(make_tenant(stage.resources, limits=limits))


def send_prompt(requester: Requester, conversation: str, prompt: str) -> Any:
    body = {"conversationId": conversation, "prompt": prompt}
    return requester.send("POST", "/admin/api/ai/chat/site", json=body)


def test_a_prompt_beyond_the_limit_opens_no_stream(stage: Stage, limited_requester: Requester) -> None:
    stage.script_replies("Hello.")
    assert send_prompt(limited_requester, stage.conversation.id, "Hello").status_code == 200
    refused = send_prompt(limited_requester, stage.conversation.id, "Hello again")
    assert refused.status_code == CASES["G107"]["expected"]["http_status"]
    assert refused.headers["content-type"] == "application/json"


def test_a_conversation_of_somebody_else_is_not_found(stage: Stage, requester: Requester) -> None:
    other = Caller(tenant=stage.caller.tenant, user="somebody-else", capabilities=stage.caller.capabilities)
    foreign = create_conversation(stage.resources, other, "site", None, None, "")
    assert send_prompt(requester, foreign.id, "Hello").status_code == CASES["G108"]["expected"]["http_status"]


def test_a_prompt_that_is_too_long_is_refused(stage: Stage, requester: Requester) -> None:
    prompt = "x" * CASES["G109"]["input"]["message_length"]
    refused = send_prompt(requester, stage.conversation.id, prompt)
    assert refused.status_code == CASES["G109"]["expected"]["http_status"]
    assert "'prompt'" in refused.json()["error"]
