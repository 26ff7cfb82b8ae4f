"""Test what is reserved of a workspace's plan: once for a repetition, and never past the limit."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.domain.errors import TooManyRequests
from fermata.domain.plan_refusals import (
    PlanLimitReached,
    PlanLocked,
    PlanUpgradeRequired,
    find_month_end,
    to_month,
)
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.metered_uses import (
    REPEATED_SECONDS,
    MeteredUse,
    UseReservation,
    reserve_metered_use,
)
from fermata.limits.month_counts import build_months_key, list_month_counts
from tests.resources import TestClock
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

BAKERY = "bakery"
FIVE = Subscription(plan="starter", limits={"chatMessages": 5, "apiMessages": 3})


def reserve(resources: Resources, use_id: str, user: str = "ada", plan: Subscription = FIVE) -> UseReservation:
    return reserve_metered_use(resources, BAKERY, plan, MeteredUse(PlanMeter.CHAT_MESSAGES, use_id, user))


def count(resources: Resources, user: str = "", meter: PlanMeter = PlanMeter.CHAT_MESSAGES, month: str = "") -> int:
    key = build_months_key(resources, BAKERY, user, month or to_month(resources.clock.time()))
    return int(list_month_counts(resources.tables.get_item_by_key(key))[meter])


def test_a_message_counts_for_its_user_and_the_workspace(resources: Resources) -> None:
    reserve(resources, "1")
    reserve(resources, "2", "ben")
    assert (count(resources), count(resources, "ada"), count(resources, "ben")) == (2, 1, 1)


def test_a_repeated_request_counts_once(resources: Resources) -> None:
    first, second = reserve(resources, "1"), reserve(resources, "1")
    assert not first.is_repeated
    assert second == replace(first, is_repeated=True)
    assert count(resources) == 1


def test_the_same_id_of_another_user_is_another_use(resources: Resources) -> None:
    reserve(resources, "1", "ada")
    assert not reserve(resources, "1", "ben").is_repeated


def test_an_id_is_free_again_after_a_day(resources: Resources, clock: TestClock) -> None:
    reserve(resources, "1")
    clock.now += REPEATED_SECONDS + 1
    assert not reserve(resources, "1").is_repeated


def test_the_sixth_of_five_is_refused_in_words_that_say_what_to_do(resources: Resources) -> None:
    for number in range(5):
        reserve(resources, str(number))
    with pytest.raises(PlanLimitReached, match="used the 5 messages to the agent that its plan starter includes") as no:
        reserve(resources, "one more")
    assert "Choose a larger plan" in no.value.message
    assert (no.value.status, no.value.code) == (429, "planLimitReached")
    assert no.value.retry_after == find_month_end(resources.clock.time()) - int(resources.clock.time())
    assert reserve(resources, "3").is_repeated, "What was reserved may still be repeated."
    assert count(resources) == 5


def test_fifty_requests_at_the_limit_at_once_do_not_pass_it(resources: Resources) -> None:
    outcomes: list[str] = []

    def ask(number: int) -> None:
        try:
            reserve(resources, f"{number}", f"user-{number % 7}")
            outcomes.append("reserved")
        except TooManyRequests:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 45 + ["reserved"] * 5
    assert count(resources) == 5


def test_one_that_is_counted_between_read_and_write_takes_the_last_place(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        reserve(resources, str(number))
    write = resources.tables.write_items
    raced: list[bool] = []

    def write_second(*writes: Any) -> None:
        if not raced:
            raced.append(True)
            reserve(resources, "faster", "ben")
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_second)
    with pytest.raises(PlanLimitReached):
        reserve(resources, "slower")
    assert count(resources) == 5


def test_a_request_whose_answer_was_lost_counts_once(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    write = resources.tables.write_items
    landed: list[Any] = []

    def write_twice(*writes: Any) -> None:
        write(*writes)
        if not landed:
            landed.append(writes)
            write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_twice)
    assert not reserve(resources, "1").is_repeated
    assert count(resources) == 1


def test_a_late_copy_of_a_reservation_does_not_count(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    write = resources.tables.write_items
    sent: list[Any] = []

    def record(*writes: Any) -> None:
        sent.append(writes)
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", record)
    reserve(resources, "1")
    [reserved] = sent
    assert isinstance(reserved[0], Put)
    with pytest.raises(TransactionCanceled):
        write(*reserved)
    assert count(resources) == 1


def test_a_month_ends_at_midnight_in_utc(resources: Resources, clock: TestClock) -> None:
    clock.now = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    for number in range(5):
        reserve(resources, str(number))
    with pytest.raises(PlanLimitReached, match="renew on 2027-01-01"):
        reserve(resources, "late")
    clock.now += 1
    assert not reserve(resources, "new year").is_repeated
    assert (count(resources, month="2026-12"), count(resources, month="2027-01")) == (5, 1)


def test_a_message_of_december_that_is_sent_again_in_january_counts_in_december(
    resources: Resources, clock: TestClock
) -> None:
    clock.now = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    reserve(resources, "1")
    clock.now += 10
    assert reserve(resources, "1").month == "2026-12"
    assert count(resources, month="2027-01") == 0


def test_a_key_has_a_limit_of_its_own(resources: Resources) -> None:
    def send(use_id: str, key: str) -> UseReservation:
        use = MeteredUse(PlanMeter.API_MESSAGES, use_id, key, "api", own_limit=2)
        return reserve_metered_use(resources, BAKERY, FIVE, use)

    send("1", "apikey:a"), send("2", "apikey:a")
    with pytest.raises(PlanLimitReached, match="This key has used its 2 messages by API"):
        send("3", "apikey:a")
    send("3", "apikey:b")
    with pytest.raises(PlanLimitReached, match="The workspace has used the 3 messages by API"):
        send("4", "apikey:b")


@pytest.mark.parametrize(
    ("state", "words"),
    [("trial", "trial of this workspace has ended"), ("grace", "payment"), ("cancelled", "was cancelled")],
)
def test_a_locked_workspace_may_use_nothing(resources: Resources, clock: TestClock, state: Any, words: str) -> None:
    until = int(clock.now) + 60
    plan = Subscription(plan="pro", state=state, until=until)
    reserve(resources, "1", plan=plan)
    clock.now = until
    with pytest.raises(PlanLocked, match=words) as locked:
        reserve(resources, "2", plan=plan)
    assert (locked.value.status, locked.value.code) == (402, "planLocked")
    assert count(resources) == 1


def test_a_plan_without_messages_says_that_it_has_none(resources: Resources) -> None:
    with pytest.raises(PlanUpgradeRequired, match="The plan free has no messages to the agent") as refused:
        reserve(resources, "1", plan=Subscription(plan="free", overage=True))
    assert refused.value.status == 402


def test_what_exceeds_the_plan_counts_where_it_is_billed(resources: Resources) -> None:
    for number in range(7):
        reserve(resources, str(number), plan=FIVE.model_copy(update={"overage": True}))
    assert count(resources) == 7


def test_a_workspace_without_a_plan_has_no_limits_and_is_counted(resources: Resources) -> None:
    reserve_metered_use(resources, BAKERY, Subscription(), MeteredUse(PlanMeter.FORM_SUBMISSIONS, "1"))
    assert count(resources, meter=PlanMeter.FORM_SUBMISSIONS) == 1


def test_a_damaged_count_is_replaced(resources: Resources) -> None:
    key = build_months_key(resources, BAKERY, "", to_month(resources.clock.time()))
    item = {"pk": key.pk, "sk": key.sk, "chatMessages": "many"}
    resources.tables.write_items(Put(key.table, item, if_absent=True))
    reserve(resources, "1")
    assert count(resources) == 1
