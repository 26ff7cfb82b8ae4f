"""A server that has a callback token posts results of one turn, with no more rights than who has issued it."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, NotFound, Unauthorized
from fermata.turns.answer.result_tokens import (
    MAX_CALLBACK_SECONDS,
    issue_callback_token,
    open_callback_token,
    require_grant,
)
from fermata.wire.auth.api_key_store import create_api_key, revoke_api_key
from tests.tenant_tokens import make_tenant
from tests.unit.turns.scenarios import run_until_waiting
from tests.unit.turns.stage import ADA, OK, Stage


def issue(stage: Stage, caller: Caller = ADA, **options: Any) -> str:
    return issue_callback_token(stage.resources, caller, stage.turn.id, **options).text


def refuse(stage: Stage, text: str) -> str:
    with pytest.raises(Unauthorized) as refused:
        open_callback_token(stage.resources, text)
    return refused.value.reason


def test_a_token_is_worth_no_more_than_the_api_key_that_asked_for_it(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    manager = ADA.model_copy(update={"capabilities": ADA.capabilities | {"ai.keys.manage"}})
    make_tenant(stage.resources, ADA.tenant)
    key, _ = create_api_key(stage.resources, manager, "Importer", ["ai.chat"])
    token = issue(stage, ADA.model_copy(update={"api_key": key.id}))
    assert open_callback_token(stage.resources, token).caller.user == ADA.user
    revoke_api_key(stage.resources, ADA.tenant, key.id)
    assert refuse(stage, token) == "api_key"
    assert open_callback_token(stage.resources, issue(stage))


def test_a_token_answers_a_request_as_the_user_of_the_turn(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    grant = open_callback_token(stage.resources, issue(stage))
    require_grant(grant, stage.turn.id, stage.tool_requests()[0].request_id)
    stage.answer_request(OK, caller=grant.caller)
    assert stage.event_types()[-1] == "toolResult"


def test_a_token_has_no_other_rights(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    grant = open_callback_token(stage.resources, issue(stage))
    assert grant.caller.capabilities == {"ai.chat", "ai.tools.write"}
    reader = ADA.model_copy(update={"capabilities": frozenset({"ai.chat", "ai.turns.manage"}), "user": "root"})
    grant = open_callback_token(stage.resources, issue(stage, reader))
    assert (grant.caller.user, grant.caller.capabilities) == ("ada", {"ai.chat"})


def test_a_token_may_be_for_some_requests_only(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    grant = open_callback_token(stage.resources, issue(stage, request_ids=["1.0.abc"]))
    require_grant(grant, stage.turn.id, "1.0.abc")
    for bridge_id, request_id in ((stage.turn.id, "1.1.abc"), ("another", "1.0.abc")):
        with pytest.raises(Unauthorized):
            require_grant(grant, bridge_id, request_id)


def test_a_token_expires(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    text = issue(stage, seconds=60)
    stage.pass_time(59)
    assert open_callback_token(stage.resources, text)
    stage.pass_time(2)
    assert refuse(stage, text) == "expired"


def test_no_token_is_valid_for_more_than_a_week(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    text = issue(stage, seconds=10**9)
    stage.pass_time(MAX_CALLBACK_SECONDS + 1)
    assert refuse(stage, text) == "expired"


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text + "x", lambda _text: "", lambda _: "fmc.."]
)
def test_what_is_no_token_is_refused_without_a_read(stage: Stage, change: Any) -> None:
    run_until_waiting(stage, "deleteNode")
    assert refuse(stage, change(issue(stage))) == "malformed"


def test_a_token_of_another_turn_or_secret_is_unknown(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    mark, tenant, bridge_id, secret = issue(stage).split(".")
    for parts in (
        (mark, tenant, "other", secret),
        (mark, "other", bridge_id, secret),
        (mark, tenant, bridge_id, "x" * 43),
    ):
        assert refuse(stage, ".".join(parts)) == "unknown"


def test_the_secret_is_not_stored(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    secret = issue(stage).split(".")[-1]
    assert secret not in str(stage.stored_items(stage.turn.pk))


def test_only_who_may_see_a_turn_issues_tokens_for_it(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    for stranger in ({"user": "eve"}, {"tenant": "butcher"}):
        with pytest.raises(NotFound):
            issue(stage, ADA.model_copy(update=stranger))


def test_there_is_no_token_for_a_turn_that_has_ended(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.cancel_turn()
    with pytest.raises(Conflict):
        issue(stage)


def test_a_grant_is_compared_by_its_turn(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    grant = open_callback_token(stage.resources, issue(stage))
    assert not replace(grant, bridge_id="other").allows(stage.turn.id, "1.0.abc")
