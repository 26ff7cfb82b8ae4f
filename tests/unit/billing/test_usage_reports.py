"""Reports of use reach the billing system: each use in one report, kept until it is taken or given up."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Delete, Put, TransactionCanceled
from fermata.aws.message_queue import MAX_DELAY_SECONDS
from fermata.aws.resources import Resources
from fermata.billing.billing_receiver import remove_billing_receiver, set_billing_receiver
from fermata.billing.deliver_usage_report import deliver_usage_report, retry_failed_reports
from fermata.billing.make_usage_reports import make_usage_reports
from fermata.billing.queue_usage_reports import queue_usage_reports
from fermata.billing.usage_report import UsageReport, build_report_key, read_workspace_reports
from fermata.domain.errors import AddressRefused
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.metered_uses import MeteredUse, reserve_metered_use
from fermata.limits.month_counts import months_partition
from fermata.signed_requests.signature import verify_request
from fermata.webhooks.send_event import MAX_AGE_SECONDS
from fermata.wire.auth.tenant_store import update_tenant
from fermata_client.commands.deployment.billing import billing
from tests.resources import TestClock
from tests.scripted_tool_server import ReceivedCall, ScriptedToolServer, run_scripted_tool_server
from tests.stored_rows import clear_tables
from tests.tenant_tokens import make_tenant
from tests.unit.resource_fixtures import clock, shared_resources
from tests.unit.turns.scripted_queue import ScriptedQueue, install_scripted_queue

__all__ = ["clock", "shared_resources"]

BAKERY = "bakery"
FIVE = Subscription(plan="starter", limits={"chatMessages": 5}, overage=True)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as running:
        yield running


@pytest.fixture
def receiver(server: ScriptedToolServer) -> ScriptedToolServer:
    server.answers, server.calls = [], []
    server.script_answer({})
    return server


@pytest.fixture
def resources(shared_resources: Resources, clock: TestClock) -> Resources:
    clear_tables()
    local = Resources(shared_resources.settings.model_copy(update={"fermata_stage": "local"}), clock)
    install_scripted_queue(local)
    make_tenant(local, BAKERY)
    update_tenant(local, BAKERY, subscription=FIVE)
    return local


def use(resources: Resources, count: int = 1, meter: PlanMeter = PlanMeter.CHAT_MESSAGES, tenant: str = BAKERY) -> None:
    for _ in range(count):
        reserve_metered_use(resources, tenant, FIVE, MeteredUse(meter, new_id(), "ada", "studio"))


def run(resources: Resources) -> int:
    """Do what the schedule does, and deliver what is not delayed."""
    queued = queue_usage_reports(resources, lambda: True)
    queue_of(resources).deliver(resources)
    return queued


def queue_of(resources: Resources) -> ScriptedQueue:
    queue = resources.webhook_queue
    assert isinstance(queue, ScriptedQueue)
    return queue


def told(receiver: ScriptedToolServer) -> list[tuple[str, int, int]]:
    return [
        (call.body["data"]["meter"], call.body["data"]["quantity"], call.body["data"]["total"])
        for call in calls_by_id(receiver)
    ]


def calls_by_id(receiver: ScriptedToolServer) -> list[ReceivedCall]:
    """Return what a billing system counts: each id once."""
    return list({call.headers["webhook-id"]: call for call in receiver.calls}.values())


def test_each_use_is_in_one_report_which_is_signed(resources: Resources, receiver: ScriptedToolServer) -> None:
    secret = set_billing_receiver(resources, receiver.url)
    use(resources, 7)
    use(resources, 2, PlanMeter.MCP_CALLS)
    assert (run(resources), run(resources)) == (2, 0)
    assert sorted(told(receiver)) == [("ai_messages", 7, 7), ("mcp_calls", 2, 2)]
    [first] = [call for call in receiver.calls if call.body["data"]["meter"] == "ai_messages"]
    verify_request([secret], first.headers, resources.clock.time(), first.raw)
    assert first.body["type"] == "usage.reported"
    data = first.body["data"]
    assert data["id"] == first.headers["webhook-id"]
    expected = {"tenant": BAKERY, "plan": "starter", "included": 5, "exceeding": 2, "overage": True}
    assert {name: data[name] for name in expected} == expected
    use(resources, 1)
    run(resources)
    assert told(receiver)[-1] == ("ai_messages", 1, 8)
    assert receiver.calls[-1].body["data"]["exceeding"] == 1
    assert read_workspace_reports(resources, BAKERY).waiting == []


def test_nothing_is_lost_while_the_receiver_is_down(
    resources: Resources, receiver: ScriptedToolServer, clock: TestClock
) -> None:
    set_billing_receiver(resources, receiver.url)
    receiver.answers = []
    receiver.script_answer({}, 503)
    use(resources, 3)
    run(resources)
    clock.now += 3_600
    use(resources, 2)
    run(resources)
    [waiting, later] = read_workspace_reports(resources, BAKERY).waiting
    assert (waiting.quantity, waiting.state, waiting.error) == (3, "waiting", "It answered 503.")
    assert all(0 < delay <= MAX_DELAY_SECONDS for _, delay in queue_of(resources).messages)
    queue_of(resources).messages.clear()  # the queue has lost them
    receiver.script_answer({})
    receiver.answers = receiver.answers[-1:]
    clock.now += 3_600
    assert run(resources) == 2
    assert {call.headers["webhook-id"] for call in receiver.calls} == {waiting.id, later.id}, (
        "Every attempt has its id."
    )
    assert sum(quantity for _, quantity, _ in told(receiver)) == 5
    assert read_workspace_reports(resources, BAKERY).waiting == []


def test_a_report_that_nobody_takes_is_given_up_shown_and_sent_again_on_request(
    resources: Resources, receiver: ScriptedToolServer, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_billing_receiver(resources, receiver.url)
    receiver.answers = []
    receiver.script_answer({}, 422)
    use(resources)
    run(resources)
    [(message, _)] = queue_of(resources).messages
    clock.now += MAX_AGE_SECONDS + 60
    deliver_usage_report(resources, message)
    assert run(resources) == 0, "What was given up is not sent by itself."
    monkeypatch.setattr("fermata_client.commands.deployment.billing.open_operator_resources", lambda *_: resources)
    shown = json.loads(CliRunner().invoke(billing, ["show"]).stdout)
    assert shown["receiver"]["url"] == receiver.url
    [dead] = shown["reports"]
    assert (dead["tenant"], dead["state"], dead["status"], dead["attempts"]) == (BAKERY, "failed", 422, 2)
    receiver.answers = []
    receiver.script_answer({})
    assert "1 reports are sent again" in CliRunner().invoke(billing, ["retry"]).stdout
    assert (run(resources), retry_failed_reports(resources, BAKERY)) == (1, 0)
    assert read_workspace_reports(resources, BAKERY).waiting == []


def test_without_a_receiver_uses_are_counted_and_reported_to_the_next_one(
    resources: Resources, receiver: ScriptedToolServer
) -> None:
    use(resources, 2)
    assert run(resources) == 0
    set_billing_receiver(resources, receiver.url)
    run(resources)
    remove_billing_receiver(resources)
    use(resources, 1)
    assert run(resources) == 0
    set_billing_receiver(resources, receiver.url)
    run(resources)
    assert told(receiver) == [("ai_messages", 2, 2), ("ai_messages", 1, 3)]


def test_a_use_of_the_last_second_of_a_month_is_reported_in_the_next_one(
    resources: Resources, receiver: ScriptedToolServer, clock: TestClock
) -> None:
    set_billing_receiver(resources, receiver.url)
    clock.now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC).timestamp()
    use(resources, 2)
    clock.now += 3_600
    use(resources, 1)
    run(resources)
    found = {(call.body["data"]["month"], call.body["data"]["quantity"]) for call in receiver.calls}
    assert found == {("2026-11", 2), ("2026-12", 1)}


def test_two_runs_at_once_report_a_use_once(resources: Resources, receiver: ScriptedToolServer) -> None:
    set_billing_receiver(resources, receiver.url)
    use(resources, 4)
    known = read_workspace_reports(resources, BAKERY)
    assert [one.quantity for one in make_usage_reports(resources, BAKERY, known)] == [4]
    assert make_usage_reports(resources, BAKERY, known) == [], "It has read the same rows, and comes second."
    assert [one.quantity for one in read_workspace_reports(resources, BAKERY).waiting] == [4]


def test_a_report_whose_answer_was_lost_is_sent_by_a_later_run(
    resources: Resources, receiver: ScriptedToolServer, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_billing_receiver(resources, receiver.url)
    use(resources, 4)
    write = resources.tables.write_items

    def lose_answer(*writes: object) -> None:
        write(*writes)  # type: ignore[arg-type]
        raise TransactionCanceled([])

    with monkeypatch.context() as patch:
        patch.setattr(resources.tables, "write_items", lose_answer)
        assert queue_usage_reports(resources, lambda: True) == 0
    clock.now += 3_600
    assert run(resources) == 1
    assert told(receiver) == [("ai_messages", 4, 4)]


def test_a_late_copy_of_an_attempt_changes_nothing(resources: Resources, receiver: ScriptedToolServer) -> None:
    set_billing_receiver(resources, receiver.url)
    use(resources)
    queue_usage_reports(resources, lambda: True)
    [(message, _)] = queue_of(resources).messages
    deliver_usage_report(resources, message)
    deliver_usage_report(resources, message)
    assert len(receiver.calls) == 1
    receiver.answers = []
    receiver.script_answer({}, 500)
    use(resources, 1, PlanMeter.MCP_CALLS)
    queue_of(resources).messages.clear()
    queue_usage_reports(resources, lambda: True)
    [(message, _)] = queue_of(resources).messages
    queue_of(resources).messages.clear()
    receiver.script_answer({}, 500, before=lambda _call: _count_attempt(resources, message))
    receiver.answers = receiver.answers[-1:]
    deliver_usage_report(resources, message)
    assert queue_of(resources).messages == [], "The other copy has queued the next attempt."


def test_a_message_that_comes_again_after_the_next_attempt_was_queued_leaves_one_chain(
    resources: Resources, receiver: ScriptedToolServer
) -> None:
    set_billing_receiver(resources, receiver.url)
    receiver.answers = []
    receiver.script_answer({}, 500)
    use(resources)
    queue_usage_reports(resources, lambda: True)
    [(first, _)] = queue_of(resources).messages
    queue_of(resources).messages.clear()
    deliver_usage_report(resources, first)
    deliver_usage_report(resources, first)  # its function had died before the message was deleted
    [(second, _)] = queue_of(resources).messages
    assert (len(receiver.calls), second["attempt"]) == (1, 2)


def _count_attempt(resources: Resources, message: dict[str, str]) -> None:
    """Count an attempt as another function does that has the same message."""
    [report] = read_workspace_reports(resources, BAKERY).waiting
    from fermata.billing.deliver_usage_report import _change_report

    assert _change_report(resources, BAKERY, report, attempts=report.attempts + 1)


def test_a_run_that_ends_early_is_gone_on_with_where_it_ended(
    resources: Resources, receiver: ScriptedToolServer
) -> None:
    set_billing_receiver(resources, receiver.url)
    for name in ("atelier", "cinema"):
        make_tenant(resources, name)
    for name in ("atelier", BAKERY, "cinema"):
        use(resources, 1, tenant=name)
    for _ in range(3):
        queue_usage_reports(resources, lambda: False)
    queue_of(resources).deliver(resources)
    assert sorted(call.body["data"]["tenant"] for call in receiver.calls) == ["atelier", BAKERY, "cinema"]
    named = str(resources.tables.get_item(resources.settings.settings_table, "billing", "position"))
    assert not any(name in named for name in ("atelier", BAKERY, "cinema")), "which may be erased, and this row stays"


def test_a_name_that_an_earlier_release_has_left_as_the_position_goes(
    resources: Resources, receiver: ScriptedToolServer
) -> None:
    set_billing_receiver(resources, receiver.url)
    table = resources.settings.settings_table
    resources.tables.write_items(Put(table, {"pk": "billing", "sk": "position", "v": 1, "tenant": "erased"}))
    run(resources)
    assert "tenant" not in (resources.tables.get_item(table, "billing", "position") or {})


def test_a_workspace_whose_reports_cannot_be_read_keeps_no_other_from_being_reported(
    resources: Resources, receiver: ScriptedToolServer, caplog: pytest.LogCaptureFixture
) -> None:
    set_billing_receiver(resources, receiver.url)
    make_tenant(resources, "cinema")
    use(resources, 2)
    use(resources, 1, tenant="cinema")
    key = build_report_key(resources, BAKERY, "open#damaged")
    resources.tables.write_items(Put(key.table, {"pk": key.pk, "sk": key.sk, "id": 7}))
    assert run(resources) == 1
    assert [call.body["data"]["tenant"] for call in receiver.calls] == ["cinema"]
    assert "billing.workspace_failed" in caplog.text
    resources.tables.write_items(Delete(*key))
    assert run(resources) == 1
    assert told(receiver)[-1] == ("ai_messages", 2, 2)


def test_a_mark_of_what_is_reported_outlives_what_was_counted(
    resources: Resources, receiver: ScriptedToolServer
) -> None:
    """Expired rows go in any order within days: a month without its mark would be reported again."""
    set_billing_receiver(resources, receiver.url)
    use(resources, 2)
    run(resources)
    [counted] = resources.tables.query_items(resources.settings.bridges_table, months_partition(BAKERY))
    [mark] = read_workspace_reports(resources, BAKERY).reported.values()
    assert mark["ttl"] >= counted["ttl"] + 30 * 86_400


def test_an_address_within_the_network_is_no_receiver(shared_resources: Resources) -> None:
    for url in ("http://billing.example.com", "https://10.0.0.1/usage", "https://localhost/usage"):
        with pytest.raises(AddressRefused):
            set_billing_receiver(shared_resources, url)


def test_a_report_of_a_newer_release_is_kept_whole() -> None:
    row = {
        "id": "a",
        "meter": "tokens",
        "month": "2026-11",
        "plan": "pro",
        "quantity": 1,
        "total": 1,
        "at": 1,
        "since": 1,
    }
    assert UsageReport.from_stored(row | {"region": "eu"}).to_stored()["region"] == "eu"
