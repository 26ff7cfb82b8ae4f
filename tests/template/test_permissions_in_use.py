"""The doors do their work with nothing but the permissions that the template gives them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.conversations import threads
from fermata.credentials import defaults, keyring
from fermata.turns import ending, reading, recovering
from fermata.wire.edge import Routes, serve
from fermata.wire.http import Request
from functions.api import app as api
from functions.credentials import app as credentials
from functions.stream import app as stream
from functions.tool_result import app as tool_result
from tests.callers import make_tenant
from tests.desk import TestClock, another_process, clock, desk  # noqa: F401 (fixtures)
from tests.template import iam
from tests.template.guarded import GuardedDesk, guarded
from tests.template.stack import Template
from tests.unit.turns.stage import OK, Stage, call, calls, says

LARGE = "x" * 40_000
"""More than a row takes: it goes to the bucket."""
SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p"}, "filler": LARGE}
At = Callable[[str], Stage]


@pytest.fixture
def doors(desk: Desk, deployed: Template, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:  # noqa: F811 (fixture)
    """A stage, and a guarded desk for each door; whatever was refused in a test fails it at the end."""
    stage = Stage(desk, monkeypatch)
    roles = iam.by_door(deployed)
    desks = {door: guarded(desk, stage.workflow, role) for door, role in roles.items()}
    yield {"stage": stage, **desks}
    assert {door: found.guard.refused for door, found in desks.items() if found.guard.refused} == {}


@pytest.fixture
def at(doors: dict[str, Any]) -> At:
    """The stage as one of the doors sees it: `at("round").run()`."""

    def seen(door: str) -> Stage:
        stage: Stage = doors["stage"]
        stage.desk = doors[door]
        return stage

    return seen


def test_a_turn_with_large_prompts_calls_and_answers_runs_from_door_to_door(at: At) -> None:
    turn = at("stream").start(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("stream").start(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("round").says(calls(call("list_documents"), call("insertHtml", parentId="p", html=LARGE)), LARGE)
    assert at("round").run() == "waiting"
    assert at("api").look()["status"] == "paused"
    request = at("stream").requests()[-1].request_id
    at("tool_result").answer({"ok": True, "data": LARGE}, request, snapshot=SNAPSHOT)
    at("tool_result").answer({"ok": True, "data": LARGE}, request)
    assert at("round").run() == "finished"
    assert reading.catch_up(at("stream").desk, turn, 0)


def test_several_calls_are_answered_one_by_one(at: At) -> None:
    at("stream").start()
    at("round").says(calls(call("deleteNode", nodeId="a"), call("deleteNode", nodeId="b")), "Gone.")
    at("round").run()
    for _ in range(2):
        request = at("stream").requests()[-1].request_id
        at("tool_result").answer(OK, request)
    assert at("round").run() == "finished"


def test_a_long_wait_is_held_and_answered(desk: Desk, at: At, doors: dict[str, Any]) -> None:  # noqa: F811 (fixture)
    at("stream").start()
    patient = desk.settings.model_copy(update={"browser_wait_seconds": 3600})
    doors["round"] = _with_settings(doors["round"], patient)
    doors["hold"] = _with_settings(doors["hold"], patient)
    at("round").says(calls(call("insertHtml", parentId="p", html=LARGE)), "Done.")
    wake = at("round").advance()
    output = at("round").workflow.outputs[wake.token]
    assert output["next"] == "hold"
    held = at("hold").advance(holds=True, hint=output["hint"])
    assert held.token not in at("hold").workflow.outputs
    request = at("stream").requests()[-1].request_id
    at("tool_result").answer(OK, request)
    assert at("round").run() == "finished"


def _with_settings(door: GuardedDesk, settings: Any) -> GuardedDesk:
    changed = GuardedDesk(settings, door.clock, door.guard)
    changed.__dict__["workflow"] = door.workflow
    return changed


def test_nobody_answers_and_the_round_gives_up(at: At, clock: TestClock) -> None:  # noqa: F811 (fixture)
    at("stream").start()
    at("round").says(calls(call("insertHtml", parentId="p", html="<p></p>")))
    at("round").run()
    clock.go_on(120)
    assert at("round").run() == "finished"
    assert at("stream").types()[-1] == "error"


def test_a_cancel_in_mid_text_is_paid_for_and_ends_the_turn(at: At, doors: dict[str, Any]) -> None:
    turn = at("stream").start()
    caller = at("stream").caller
    said, reply = says(LARGE)
    at("round").says([said, lambda: ending.cancel(doors["api"], caller, turn.id), reply])
    at("round").advance()
    assert at("stream").types()[-1] == "cancelled"


def test_a_cancel_while_the_browser_works_wakes_the_round(at: At) -> None:
    at("stream").start()
    at("round").says(calls(call("insertHtml", parentId="p", html=LARGE)))
    at("round").run()
    assert at("api").cancel() == "cancelled"


def test_a_new_prompt_takes_over_from_a_turn_that_is_still_talking(at: At, clock: TestClock) -> None:  # noqa: F811 (fixture)
    at("stream").start(dialect="instatic")
    said, reply = says(LARGE)
    at("round").says([said, lambda: clock.go_on(5), lambda: at("stream").start(dialect="instatic"), reply], "Second.")
    at("round").advance()
    assert at("round").run() == "finished"


def test_a_prompt_that_meets_a_silent_turn_sees_to_it(at: At, clock: TestClock) -> None:  # noqa: F811 (fixture)
    at("stream").start()
    at("stream").workflow.started.clear()
    clock.go_on(60)
    with pytest.raises(Exception, match="already generating"):
        at("stream").start()
    assert at("stream").workflow.started


def test_the_recovery_starts_continues_and_ends_turns(at: At, doors: dict[str, Any], clock: TestClock) -> None:  # noqa: F811 (fixture)
    turn = at("stream").start()
    workflow = at("stream").workflow
    workflow.started.clear()
    clock.go_on(60)
    assert recovering.sweep(doors["recover"]) == 1
    workflow.states[turn.id, 1] = ("SUCCEEDED", "")
    said, reply = says(LARGE)
    at("round").says(
        [
            said,
            lambda: recovering.sweep(doors["recover"]),
            lambda: recovering.recover(doors["recover"], turn.tenant, turn.id, n=2, has_failed=True),
            reply,
        ]
    )
    at("round").advance()
    assert (turn.id, 2) in workflow.started
    assert at("stream").types()[-1] == "error"


def test_credentials_and_defaults_are_managed(doors: dict[str, Any]) -> None:
    stage, vault, other = doors["stage"], doors["credentials"], doors["api"]
    made = keyring.create(vault, stage.caller, "anthropic", "apiKey", "second", "sk-ant-2")
    keyring.change(vault, stage.caller, made.id, "renamed", "sk-ant-3")
    assert len(keyring.of_caller(vault, stage.caller)) == 2
    defaults.set_default(other, stage.caller, "site", made.id, "model-1")
    assert defaults.defaults_view(other, stage.caller.tenant)
    defaults.clear_default(other, stage.caller, "site")
    keyring.remove(vault, stage.caller, made.id)


def test_conversations_are_made_and_shown(at: At) -> None:
    at("stream").start(LARGE)
    at("round").says(LARGE)
    at("round").run()
    stage = at("api")
    threads.create(stage.desk, stage.caller, "site", "Another", None, "model-1")
    shown = threads.find(stage.desk, stage.caller, stage.conversation.id)
    assert threads.messages_view(stage.desk, stage.caller, shown.id)


@pytest.mark.parametrize(
    ("door", "routes", "method", "path"),
    [
        ("stream", stream.ROUTES, "GET", "/admin/api/ai/bridges/none/events"),
        ("tool_result", tool_result.ROUTES, "POST", "/admin/api/ai/tool-result"),
        ("api", api.ROUTES, "GET", "/admin/api/ai/defaults"),
        ("credentials", credentials.ROUTES, "GET", "/admin/api/ai/credentials"),
    ],
)
def test_every_door_at_the_edge_can_tell_who_is_asking(
    desk: Desk,  # noqa: F811 (fixture)
    doors: dict[str, Any],
    door: str,
    routes: Routes,
    method: str,
    path: str,
) -> None:
    bakery = make_tenant(another_process(desk), origins=["https://bakery.example"])
    headers = bakery.bearer() | {"origin": "https://bakery.example"}
    answer = serve(doors[door], routes, Request(id="r", method=method, path=path, headers=headers, body=b"{}"))
    assert answer.status not in (401, 403, 500)
    asked = Request(id="r", method="OPTIONS", path=path, headers={"origin": "https://bakery.example"})
    assert serve(doors[door], routes, asked).status == 204


def test_a_permission_that_is_missing_is_noticed(desk: Desk, doors: dict[str, Any]) -> None:  # noqa: F811 (fixture)
    stage: Stage = doors["stage"]
    powerless = guarded(desk, stage.workflow, iam.Role("nobody", ()))
    with pytest.raises(AssertionError, match="nobody does not allow dynamodb:GetItem on ConversationsTable"):
        threads.find(powerless, stage.caller, stage.conversation.id)
    with pytest.raises(AssertionError, match="states:StartExecution"):
        powerless.workflow.start("bakery", "turn", 1)
