"""The doors do their work with nothing but the permissions that the template gives them."""

import queue
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws import uploads
from fermata.aws.desk import Desk
from fermata.conversations import threads, views
from fermata.conversations.purging import purge
from fermata.credentials import defaults, keyring, models, seeding, using
from fermata.hosts import registry
from fermata.pricing import refreshing
from fermata.turns import ending, looking, reading, recovering, room
from fermata.usage import ledger
from fermata.usage.audit import audit
from fermata.usage.balance import balance
from fermata.usage.budgets import Budgets, Limits, set_budgets
from fermata.usage.counting import Arrived, count
from fermata.wire.edge import Routes, serve
from fermata.wire.http import Request
from fermata.words.blocks import ImageBlock
from fermata.words.errors import NotFound
from functions.api import app as api
from functions.credentials import app as credentials
from functions.stream import app as stream
from functions.tool_result import app as tool_result
from tests.callers import make_tenant
from tests.desk import TestClock, another_process
from tests.hosts import scripted_host
from tests.pictures import base64_of, opened, photo
from tests.serving import serving
from tests.strict.listings import listings
from tests.template import iam
from tests.template.guarded import GuardedDesk, Need, guarded
from tests.template.iam import Role, Statement
from tests.template.stack import Template
from tests.unit.turns.stage import OK, Stage, call, calls, failure, says
from tests.uploads import announced, put

LARGE = "x" * 40_000
"""More than a row takes: it goes to the bucket."""
SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p"}, "filler": LARGE}
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")
OUTSIDE_THE_CODE = ("logs:", "xray:", "sqs:", *STREAM)
"""What Lambda itself does in a function's name."""
KEPT: dict[tuple[str, str, str], str] = {}
"""Permissions that no verb uses yet, and what they are for."""
At = Callable[[str], Stage]


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    """What all tests of this file together asked of AWS, by door; and which tests they were."""
    return {"needs": defaultdict(set), "tests": set()}


@pytest.fixture
def doors(
    desk: Desk,
    deployed: Template,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    request: pytest.FixtureRequest,
) -> Iterator[dict[str, Any]]:
    """A stage, and a guarded desk for each door; whatever was refused in a test fails it at the end."""
    stage = Stage(desk, monkeypatch)
    desks = {door: guarded(desk, stage.workflow, role) for door, role in iam.by_door(deployed).items()}
    yield {"stage": stage, **desks}
    assert {door: found.guard.refused for door, found in desks.items() if found.guard.refused} == {}
    for door, found in desks.items():
        asked["needs"][door] |= found.guard.asked
    asked["tests"].add(request.function.__name__)


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


def test_a_round_asks_the_tenants_own_content_system(desk: Desk, at: At, doors: dict[str, Any]) -> None:
    make_tenant(another_process(desk), doors["stage"].caller.tenant)
    here = desk.settings.model_copy(update={"fermata_stage": "local"})
    doors["round"] = _with_settings(doors["round"], here)
    with scripted_host() as host:
        host.says("GET tables", {"tables": []})
        registry.register(Desk(here, desk.clock), doors["stage"].caller.tenant, host.url)
        at("stream").start()
        at("round").says(calls(call("list_post_types")), "None.")
        assert at("round").run() == "finished"
        assert [asked.path for asked in host.asked] == ["tables"]
    assert Need("kms:Decrypt", "Key", "host-secret") in doors["round"].guard.asked


def test_what_one_door_lets_in_two_others_use(desk: Desk, at: At, doors: dict[str, Any]) -> None:
    caller, raw = doors["stage"].caller, b'{"page": {"id": "p"}}'
    upload = announced(doors["api"], "snapshot", raw)
    uploads.address(doors["api"], caller, upload)
    for door in ("stream", "tool_result"):
        with pytest.raises(NotFound):
            uploads.fetch(doors[door], caller, upload)
    ref = put(another_process(desk), caller, "snapshot", raw)
    used = [uploads.fetch(doors[door], caller, uploads.read_ref(ref, "snapshot")) for door in ("stream", "tool_result")]
    assert used == [raw, raw]
    shown = put(another_process(desk), caller, "image", photo())
    at("stream").start("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=shown),))
    at("round").says(calls(call("render_snapshot")), "I see.")
    at("round").run()
    screenshot = {"mimeType": "image/png", "data": base64_of(photo(kind="PNG"))}
    at("tool_result").answer({"ok": True, "images": [screenshot]}, at("stream").requests()[-1].request_id)
    assert at("round").run() == "finished"


def test_several_calls_are_answered_one_by_one(at: At) -> None:
    at("stream").start()
    at("round").says(calls(call("deleteNode", nodeId="a"), call("deleteNode", nodeId="b")), "Gone.")
    at("round").run()
    for _ in range(2):
        request = at("stream").requests()[-1].request_id
        at("tool_result").answer(OK, request)
    assert at("round").run() == "finished"


@pytest.mark.parametrize("ends", ["done", "cancel", "recover"])
def test_edits_are_taken_back_from_door_to_door(at: At, doors: dict[str, Any], clock: TestClock, ends: str) -> None:
    turn = at("stream").start(revision="1")
    at("round").says(calls(call("deleteNode", nodeId="a"), call("deleteNode", nodeId="b")), "Gone.")
    at("round").run()
    back = {"tool": "restore", "input": {"patch": {"html": LARGE}}}
    for revision in ("2", "3"):
        at("tool_result").answer(OK | {"inverse": back, "revision": revision})
    at("round").run()
    at("stream").undo(turn, idempotency_key="once")
    at("stream").undo(turn, idempotency_key="once")
    at("round").run()
    at("tool_result").answer({"ok": True, "inverse": back, "revision": "4"})
    at("round").run()
    _end(at, clock, ends)
    assert len(looking.edits(doors["api"], at("api").caller, turn.id)["entries"]) == 2
    assert at("stream").types()[-1] in ("done", "cancelled", "error")


def _end(at: At, clock: TestClock, ends: str) -> None:
    if ends == "done":
        at("tool_result").answer({"ok": False, "conflict": True, "error": LARGE, "revision": "9"})
        assert at("round").run() == "finished"
    elif ends == "cancel":
        at("api").cancel()
    else:
        clock.go_on(60)
        at("recover").recover(n=1, has_failed=True)


def test_a_long_wait_is_held_and_answered(desk: Desk, at: At, doors: dict[str, Any]) -> None:
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


def test_a_hold_that_comes_after_the_end_lets_the_execution_finish(at: At) -> None:
    at("stream").start()
    at("round").says(calls(call("insertHtml", parentId="p", html="<p></p>")))
    at("round").run()
    at("api").cancel()
    held = at("hold").advance(holds=True)
    assert at("hold").workflow.outputs[held.token]["next"] == "finish"


@pytest.mark.parametrize("ends", ["answer", "cancel", "recover"])
def test_a_round_of_very_many_calls_is_held_and_ends(
    at: At,
    doors: dict[str, Any],
    clock: TestClock,
    ends: str,
) -> None:
    turn = at("stream").start()
    at("round").says(calls(*[call("deleteNode", nodeId=f"n{number}") for number in range(400)]))
    at("round").run()
    at("hold").advance(holds=True)
    if ends == "answer":
        request = at("stream").requests()[-1].request_id
        at("tool_result").answer(OK, request)
        return
    if ends == "cancel":
        at("api").cancel()
    else:
        clock.go_on(60)
        at("stream").workflow.states[turn.id, 1] = ("FAILED", "States.Runtime")
        recovering.sweep(doors["recover"])
    assert at("stream").types()[-1] in ("cancelled", "error")


def test_nobody_answers_and_the_round_gives_up(at: At, clock: TestClock) -> None:
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


def test_a_new_prompt_takes_over_from_a_turn_that_is_still_talking(at: At, clock: TestClock) -> None:
    at("stream").start(dialect="instatic")
    said, reply = says(LARGE)
    at("round").says([said, lambda: clock.go_on(5), lambda: at("stream").start(dialect="instatic"), reply], "Second.")
    at("round").advance()
    assert at("round").run() == "finished"


def test_a_new_prompt_takes_over_from_a_turn_that_waits_for_its_browser(at: At, clock: TestClock) -> None:
    at("stream").start(dialect="instatic")
    at("round").says(calls(call("insertHtml", parentId="p", html="<p></p>")))
    at("round").run()
    clock.go_on(5)
    assert at("stream").start(dialect="instatic")


def test_a_reader_is_shown_what_comes(at: At, clock: TestClock) -> None:
    turn = at("stream").start()
    came: queue.Queue[Any] = queue.Queue()
    at("round").says("Hello.")
    at("round").run()
    tails = reading.Tails(at("stream").desk)
    follower = tails.follow(turn, 2, came.put)
    clock.go_on(1)
    assert came.get(timeout=10) is not None
    tails.leave(follower)


def test_a_prompt_that_meets_a_silent_turn_sees_to_it(at: At, clock: TestClock) -> None:
    at("stream").start()
    at("stream").workflow.started.clear()
    clock.go_on(60)
    with pytest.raises(Exception, match="already generating"):
        at("stream").start()
    assert at("stream").workflow.started


def test_the_recovery_starts_continues_and_ends_turns(at: At, doors: dict[str, Any], clock: TestClock) -> None:
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
    assert keyring.existing(other, stage.caller.tenant, [made.id, "gone"]) == {made.id}
    defaults.set_default(other, stage.caller, "site", made.id, "model-1")
    assert defaults.defaults_view(other, stage.caller.tenant)
    defaults.clear_default(other, stage.caller, "site")
    keyring.remove(vault, stage.caller, made.id)


def test_a_credential_is_tried_out_seeds_defaults_lists_its_models_and_shows_its_use(
    desk: Desk, doors: dict[str, Any]
) -> None:
    caller = doors["stage"].caller
    with listings() as server:
        server.lists("/v1/models", {"data": [{"id": "claude-opus-5"}]})
        vault = _with_settings(doors["credentials"], desk.settings.model_copy(update={"anthropic_url": server.url}))
        made = keyring.create(vault, caller, "anthropic", "apiKey", "second", server.key)
        seeding.fill_empty_defaults(vault, caller, made)
        assert models.try_out(vault, caller, made.id) == {"ok": True, "modelCount": 1}
        assert models.of_credential(vault, caller, "anthropic", made.id)
    assert defaults.defaults_view(doors["api"], caller.tenant)["site"]["modelId"] == "claude-opus-5"
    using.touch(doors["round"], caller.tenant, made.id)
    assert using.view(vault, made)["lastUsedAt"]


def test_the_catalogue_is_refreshed(desk: Desk, doors: dict[str, Any]) -> None:
    with serving() as server:
        server.body = b'{"data":[{"id":"openai/gpt-5","pricing":{"prompt":"0.1","completion":"0.2"}}]}'
        settings = desk.settings.model_copy(update={"catalogue_url": server.url})
        refresh = _with_settings(doors["refresh_prices"], settings)
        assert refreshing.refresh(refresh).how == "fetched"


def test_conversations_are_made_listed_shown_changed_and_deleted(at: At) -> None:
    taken = ImageBlock(mime_type="image/jpeg", data=base64_of(photo()))
    at("stream").start(LARGE, pictures=(taken,))
    at("round").says(LARGE)
    at("round").run()
    stage = at("api")
    made = threads.create(stage.desk, stage.caller, "site", "Another", None, "model-1")
    assert len(threads.newest(stage.desk, stage.caller, "site", limit=10).conversations) == 2
    assert threads.change(stage.desk, stage.caller, made.id, title="Renamed").title == "Renamed"
    shown = threads.find(stage.desk, stage.caller, stage.conversation.id)
    lines = views.page(stage.desk, shown, "fermata").lines
    stage = at("stream")
    raw, kind = views.image(stage.desk, shown, lines[0]["id"], "1")
    assert (opened(raw).size, kind) == ((40, 30), "image/jpeg")
    at("stream").start()
    stage = at("api")
    room.vacate(stage.desk, threads.remove(stage.desk, stage.caller, shown.id))
    assert at("stream").types()[-1] == "cancelled"


def test_budgets_hold_across_the_end_of_a_month_and_the_ledger_is_counted_and_audited(
    desk: Desk, at: At, doors: dict[str, Any], clock: TestClock
) -> None:
    stage: Stage = doors["stage"]
    stage.price(input_per_mtok=3, output_per_mtok=15)
    clock.now = datetime.fromisoformat("2027-01-31T23:59:50Z").timestamp()
    limits = Limits(daily_usd=Decimal(10))
    set_budgets(doors["api"], stage.caller, Budgets(tenant=limits, users={stage.caller.user: limits}))
    turn = at("stream").start()
    at("round").says(calls(call("insertHtml", parentId="p", html="<p></p>")), [failure(retryable=False)])
    at("round").run()
    clock.go_on(30)
    request = at("stream").requests()[-1].request_id
    at("tool_result").answer(OK, request)
    assert at("round").run() == "finished"
    rows = list(ledger.between(desk, turn.tenant, "2027-01", "2027-03"))
    assert count(doors["rollup"], [Arrived(str(number), row) for number, row in enumerate(rows)]) == ""
    shown = audit(doors["api"], turn.tenant, rows[0]["at"], "Asia/Kolkata", with_billable=True)
    assert shown["totals"]["costUsd"] > 0
    assert balance(doors["api"], turn.tenant)["tenant"]["today"]["heldUsd"] == 0


def test_deleted_conversations_are_purged(at: At, doors: dict[str, Any], clock: TestClock) -> None:
    at("stream").start(LARGE)
    at("round").says(LARGE)
    at("round").run()
    stage = at("api")
    threads.remove(stage.desk, stage.caller, stage.conversation.id)
    clock.go_on(31 * 86_400)
    assert purge(doors["purge"]) == 1


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
    desk: Desk,
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


def test_a_permission_that_is_missing_is_noticed(desk: Desk, doors: dict[str, Any]) -> None:
    stage: Stage = doors["stage"]
    powerless = guarded(desk, stage.workflow, iam.Role("nobody", ()))
    with pytest.raises(AssertionError, match="nobody does not allow dynamodb:GetItem on ConversationsTable"):
        threads.find(powerless, stage.caller, stage.conversation.id)
    with pytest.raises(AssertionError, match="states:StartExecution"):
        powerless.workflow.start("bakery", "turn", 1)


def test_no_door_may_do_more_than_it_does(deployed: Template, asked: dict[str, Any]) -> None:
    """A permission without a use is taken away, or its reason is written down in KEPT."""
    if asked["tests"] != {name for name in globals() if name.startswith("test_")} - {
        "test_no_door_may_do_more_than_it_does"
    }:
        pytest.skip("says something only after all tests of this file have passed")
    unused = {
        (door, action, resource)
        for door, role in iam.by_door(deployed).items()
        for statement in role.statements
        for action in statement.actions
        for resource in statement.resources
        if not action.startswith(OUTSIDE_THE_CODE) and not _is_used(asked["needs"][door], statement, action, resource)
    }
    assert unused == set(KEPT)


def _is_used(needs: set[Need], statement: Statement, action: str, resource: str) -> bool:
    alone = Role("one permission", (Statement((action,), (resource,), statement.equals),))
    return any(need.is_met_by(alone) for need in needs)
