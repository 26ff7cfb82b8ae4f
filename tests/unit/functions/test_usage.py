"""The audit and the budgets over HTTP."""

import calendar
import json
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.caller import Capability
from fermata.domain.errors import PaymentRequired
from fermata.domain.plan_refusals import to_month
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.delivered_traffic import TRAFFIC_SHARE_BYTES, count_traffic
from fermata.limits.metered_uses import MeteredUse, reserve_metered_use
from fermata.limits.month_counts import MEDIA_BYTE_HOURS, build_month_addition, build_months_key
from fermata.limits.plan_usage import describe_plan_usage
from fermata.usage.budgets import budget_limits
from fermata.usage.budgets.holds import BudgetedRequest
from fermata.wire.auth.tenant_store import update_tenant
from functions.api import app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.usage.ledger_factories import TENANT, make_usage, write_and_count
from tests.unit.usage.reserve_budget import reserve_budget

AUDIT, BUDGETS = "/admin/api/ai/audit", "/admin/api/ai/budgets"
NONE = {"dailyUsd": None, "monthlyUsd": None}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources, TENANT)


def send(
    signer: TokenSigner, method: str, path: str, body: Any = None, query: dict[str, str] | None = None, **claims: Any
) -> tuple[int, Any]:
    event = make_proxy_event(method, path, signer.bearer_headers(**claims), body) | {"queryStringParameters": query}
    answer = app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def get_audit(signer: TokenSigner, **query: str) -> Any:
    status, body = send(signer, "GET", AUDIT, query=query)
    assert status == 200
    return body


LAST_MOMENTS = ("9999-12-31T23:45:00Z", "9999-12-31T23:59:59.999Z", "9999-12-31T23:00:00-14:00")


class TestAudit:
    @pytest.mark.parametrize("capability", [Capability.CHAT, Capability.WRITE, Capability.PROVIDERS, Capability.TURNS])
    def test_only_who_may_read_the_audit_reads_it(self, bakery: TokenSigner, capability: str) -> None:
        assert send(bakery, "GET", AUDIT, capabilities=(str(capability),))[0] == 403
        assert send(bakery, "GET", AUDIT, capabilities=("ai.audit.read",))[0] == 200

    def test_a_tenant_sees_its_own_and_nobody_elses(self, resources: Resources, bakery: TokenSigner) -> None:
        write_and_count(resources, make_usage("2026-06-01T10:00:00.000Z"))
        grocer = make_tenant(resources, "grocer")
        assert get_audit(bakery, since="2026-01-01")["totals"]["chatCount"] == 1
        assert get_audit(grocer, since="2026-01-01")["totals"]["chatCount"] == 0

    @pytest.mark.parametrize(
        ("since", "resolved"),
        [
            ("2026-06-01", "2026-06-01T00:00:00.000Z"),
            ("2026-06-01T10:00:00.123Z", "2026-06-01T10:00:00.123Z"),
            ("2026-06-01T12:00:00+02:00", "2026-06-01T10:00:00.000Z"),
            ("2026-06-01T12:00:00 02:00", "2026-06-01T10:00:00.000Z"),
            ("2026-06-01T10:00:00", "2026-06-01T10:00:00.000Z"),
            ("2026-06", "2026-06-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ],
    )
    def test_an_instant_is_understood_and_said_again(self, bakery: TokenSigner, since: str, resolved: str) -> None:
        assert get_audit(bakery, since=since)["since"] == resolved

    @pytest.mark.parametrize(
        "since",
        ["0001-01-01", "0001-01-01T00:00:00+14:00", "0300-01-01", "0999-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z"],
    )
    def test_the_beginning_of_time_is_long_before_everything(
        self, resources: Resources, bakery: TokenSigner, since: str
    ) -> None:
        write_and_count(resources, make_usage("2026-06-01T10:00:00.000Z"))
        assert get_audit(bakery, since=since)["totals"]["chatCount"] == 1

    @pytest.mark.parametrize("since", ["2999-01-01", *LAST_MOMENTS])
    def test_nothing_was_used_since_a_time_to_come(self, resources: Resources, bakery: TokenSigner, since: str) -> None:
        write_and_count(resources, make_usage("2026-06-01T10:00:00.000Z"))
        assert get_audit(bakery, since=since)["totals"]["chatCount"] == 0

    @pytest.mark.parametrize(
        "since",
        [None, "", "yesterday", "2026-13-01", "12345678901", "20261128", "2026-W48-6"],
    )
    def test_what_is_no_instant_means_thirty_days(
        self, bakery: TokenSigner, clock: TestClock, since: str | None
    ) -> None:
        resolved = get_audit(bakery, **({} if since is None else {"since": since}))["since"]
        assert resolved == clock.now_iso(-30 * 86_400)

    def test_only_what_came_at_or_after_the_instant_counts(self, resources: Resources, bakery: TokenSigner) -> None:
        write_and_count(
            resources,
            make_usage("2026-06-01T10:02:59.999Z", prompt=1),
            make_usage("2026-06-01T10:03:00.000Z", prompt=10),
        )
        write_and_count(resources, make_usage("2026-06-01T10:20:00.000Z", prompt=100, conversation="chat-2"))
        assert get_audit(bakery, since="2026-06-01T10:03:00Z")["totals"]["promptTokens"] == 110
        assert get_audit(bakery, since="2026-06-01T10:03:00.001Z")["totals"]["promptTokens"] == 100

    @pytest.mark.parametrize("tz", ["", "Etc/Unknown"])
    def test_a_zone_that_is_not_known_to_the_browser_is_utc(
        self, resources: Resources, bakery: TokenSigner, tz: str
    ) -> None:
        write_and_count(resources, make_usage("2026-06-01T22:30:00.000Z"))
        assert get_audit(bakery, since="2026-01-01", tz=tz)["byDay"][0]["day"] == "2026-06-01"

    @pytest.mark.parametrize("since", ["2026-01-01", "9999-12-31T23:50:00Z"])
    @pytest.mark.parametrize(
        "tz",
        ["Not/AZone", "../etc/passwd", "/etc/localtime", "a" * 300, "America", "\0", "CETT", "localtime", "right/UTC"],
    )
    def test_what_is_no_zone_is_refused(self, bakery: TokenSigner, tz: str, since: str) -> None:
        status, body = send(bakery, "GET", AUDIT, query={"since": since, "tz": tz})
        assert (status, "is no time zone" in body["error"]) == (400, True)

    def test_the_costliest_come_first_and_days_in_their_order(self, resources: Resources, bakery: TokenSigner) -> None:
        facts = [("ada", "site", "small", 2, 1), ("bob", "content", "large", 9, 1), ("eve", "data", "tiny", 2, 500)]
        for day, (user, scope, model, cost, prompt) in enumerate(facts, start=1):
            told = {"user": user, "scope": scope, "model": model, "conversation": user, "prompt": prompt}
            write_and_count(resources, make_usage(f"2026-06-0{4 - day}T10:00:00.000Z", cost=Decimal(cost), **told))
        found = get_audit(bakery, since="2026-01-01")
        assert [row["userId"] for row in found["byUser"]] == ["bob", "eve", "ada"]
        assert [row["modelId"] for row in found["byModel"]] == ["large", "tiny", "small"]
        assert [row["scope"] for row in found["byScope"]] == ["content", "data", "site"]
        assert [row["day"] for row in found["byDay"]] == ["2026-06-01", "2026-06-02", "2026-06-03"]

    def test_a_conversation_counts_once_everywhere_and_once_for_each_of_its_models_and_days(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        for at, model in [("01T10", "a"), ("01T11", "b"), ("02T10", "a")]:
            write_and_count(resources, make_usage(f"2026-06-{at}:00:00.000Z", model=model))
        found = get_audit(bakery, since="2026-01-01")
        chats = {part: [row["chatCount"] for row in found[part]] for part in ("byUser", "byScope", "byModel", "byDay")}
        assert found["totals"]["chatCount"] == 1
        assert chats == {"byUser": [1], "byScope": [1], "byModel": [1, 1], "byDay": [1, 1]}

    def test_what_is_billable_is_told_when_it_is_asked_for(self, resources: Resources, bakery: TokenSigner) -> None:
        write_and_count(
            resources, make_usage("2026-06-01T10:00:00.000Z"), make_usage("2026-06-01T10:00:00.000Z", is_billable=False)
        )
        found = get_audit(bakery, since="2026-01-01", billable="true")
        assert (found["totals"]["costUsd"], found["totals"]["billableCostUsd"]) == (0.002, 0.001)
        assert found["byUser"][0]["billableCostUsd"] == 0.001

    def test_any_other_method_is_not_allowed(self, bakery: TokenSigner) -> None:
        assert send(bakery, "POST", AUDIT, {})[0] == 405


class TestBudgets:
    def test_at_first_there_are_none(self, bakery: TokenSigner) -> None:
        status, found = send(bakery, "GET", BUDGETS)
        assert status == 200
        assert (found["eachUser"], found["users"]) == (NONE, [])
        assert found["tenant"] == NONE | {"today": empty_usage(), "thisMonth": empty_usage()}
        assert found["dayRenewsAt"] <= found["monthRenewsAt"]
        assert "updatedAt" not in found

    def test_what_is_set_is_shown_and_replaces_all_that_was(self, bakery: TokenSigner) -> None:
        body = {
            "tenant": {"dailyUsd": 5, "monthlyUsd": 99.99},
            "eachUser": {"dailyUsd": 0.1},
            "users": [{"userId": "bob", "monthlyUsd": 10}],
        }
        status, found = send(bakery, "PUT", BUDGETS, body)
        assert status == 200
        assert (found["tenant"]["dailyUsd"], found["tenant"]["monthlyUsd"]) == (5, 99.99)
        assert found["tenant"]["today"] == {"spentUsd": 0, "heldUsd": 0, "leftUsd": 5}
        assert found["eachUser"] == {"dailyUsd": 0.1, "monthlyUsd": None}
        assert (found["users"][0]["userId"], found["users"][0]["monthlyUsd"]) == ("bob", 10)
        assert found["updatedBy"] == "ada"
        assert send(bakery, "GET", BUDGETS) == (200, found)
        assert send(bakery, "PUT", BUDGETS, {})[1]["tenant"]["dailyUsd"] is None

    def test_they_are_set_by_who_manages_providers_and_read_by_who_reads_the_audit_too(
        self, bakery: TokenSigner
    ) -> None:
        audit, providers = ("ai.audit.read",), ("ai.providers.manage",)
        assert send(bakery, "PUT", BUDGETS, {}, capabilities=audit)[0] == 403
        assert send(bakery, "PUT", BUDGETS, {}, capabilities=providers)[0] == 200
        assert send(bakery, "GET", BUDGETS, capabilities=audit)[0] == 200
        assert send(bakery, "GET", BUDGETS, capabilities=("ai.chat",))[0] == 403

    def test_a_tenants_budgets_are_its_own(self, resources: Resources, bakery: TokenSigner) -> None:
        grocer = make_tenant(resources, "grocer")
        limited = {"tenant": {"dailyUsd": 0}, "users": [{"userId": "ada", "dailyUsd": 0}]}
        assert send(bakery, "PUT", BUDGETS, limited)[0] == 200
        status, found = send(grocer, "GET", BUDGETS)
        assert (status, found["tenant"]["dailyUsd"], found["users"]) == (200, None, [])
        reserve_budget(resources, BudgetedRequest("grocer", "ada", "turn", 1, 1), Decimal(1))
        assert send(grocer, "PUT", BUDGETS, {})[0] == 200
        assert send(bakery, "GET", BUDGETS)[1]["tenant"]["dailyUsd"] == 0
        with pytest.raises(PaymentRequired):
            reserve_budget(resources, BudgetedRequest(TENANT, "ada", "turn", 1, 1), Decimal(1))

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "true", "null0", '"5"', "[5]"])
    def test_what_is_no_number_is_refused(self, bakery: TokenSigner, number: str) -> None:
        assert send(bakery, "PUT", BUDGETS, f'{{"tenant":{{"dailyUsd":{number}}}}}')[0] == 400

    @pytest.mark.parametrize("usd", [0, 0.000001, 0.1, 0.3, 1234567.89, 1_000_000_000])
    def test_a_limit_is_exactly_the_digits_that_were_sent(
        self, resources: Resources, bakery: TokenSigner, usd: float
    ) -> None:
        _, found = send(bakery, "PUT", BUDGETS, {"tenant": {"dailyUsd": usd}})
        assert (found["tenant"]["dailyUsd"], found["tenant"]["today"]["leftUsd"]) == (usd, usd)
        assert budget_limits.read_budgets(resources, TENANT).tenant.daily_usd == Decimal(str(usd))

    def test_the_longest_names_of_the_most_users_fit_into_one_item(self, bakery: TokenSigner) -> None:
        users = [{"userId": f"{number:03d}" + "𐐷" * 197, "dailyUsd": 1.25, "monthlyUsd": 30.5} for number in range(300)]
        for _ in range(2):
            assert send(bakery, "PUT", BUDGETS, {"users": users})[0] == 200

    @pytest.mark.parametrize(
        "body",
        [
            {"tenant": {"dailyUsd": -1}},
            {"tenant": {"dailyUsd": "5"}},
            {"tenant": {"weeklyUsd": 5}},
            {"tenant": {"monthlyUsd": 1e300}},
            {"users": [{"dailyUsd": 1}]},
            {"users": [{"userId": "bob"}, {"userId": "bob"}]},
            {"users": [{"userId": str(number)} for number in range(501)]},
        ],
    )
    def test_what_is_no_limit_is_refused(self, bakery: TokenSigner, body: Any) -> None:
        assert send(bakery, "PUT", BUDGETS, body)[0] == 400


def empty_usage() -> dict[str, Any]:
    return {"spentUsd": 0, "heldUsd": 0, "leftUsd": None}


class TestPlanUsage:
    def test_what_is_used_of_a_plan_is_shown_beside_what_it_includes(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        free = describe_plan_usage(resources, TENANT, Subscription())
        assert (free["plan"], {meter["included"] for meter in free["meters"]}) == ("community", {None})
        subscription = Subscription(plan="starter", overage=True, limits={"apiMessages": 7})
        update_tenant(resources, TENANT, subscription=subscription)
        use = MeteredUse(PlanMeter.CHAT_MESSAGES, "one", "ada", "studio")
        reserve_metered_use(resources, TENANT, subscription, use)
        status, plan = send(bakery, "GET", "/admin/api/ai/content/plan")
        meters = {meter["name"]: (meter["used"], meter["included"], meter["overageUsd"]) for meter in plan["meters"]}
        assert (status, meters["chatMessages"], meters["apiMessages"]) == (200, (1, 150, 0.03), (0, 7, 0.05))
        assert {"name": "forms", "used": 0, "included": 1} in plan["quotas"]
        assert (plan["locked"], plan["state"], plan["endsAt"]) == (False, "active", None)

    def test_media_over_time_and_traffic_are_shown_beside_what_is_counted_one_by_one(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        update_tenant(resources, TENANT, subscription=Subscription(plan="starter", overage=True))

        def read_meters() -> dict[str, tuple[Any, ...]]:
            plan = send(bakery, "GET", "/admin/api/ai/content/plan")[1]
            facts = ("used", "included", "unit", "overageUsd")
            return {meter["name"]: tuple(meter[fact] for fact in facts) for meter in plan["meters"]}

        now = resources.clock.time()
        room = 10**9 * 24 * calendar.monthrange(*map(int, to_month(now).split("-")))[1]
        meters = read_meters()
        assert meters["deliveredBytes"] == (0, 2 * 10**9, "bytes", None)
        assert meters["mediaByteHours"] == (None, room, "byteHours", 0.25), "nobody is told, so nobody counts"
        count_traffic(resources, TENANT, TRAFFIC_SHARE_BYTES)
        key = build_months_key(resources, TENANT, "", to_month(now))
        resources.tables.write_items(build_month_addition(key, None, MEDIA_BYTE_HOURS, 7, now))
        meters = read_meters()
        assert (meters["deliveredBytes"][0], meters["mediaByteHours"][0]) == (TRAFFIC_SHARE_BYTES, 7)

    def test_only_who_sees_the_usage_or_manages_content_sees_the_plan(self, bakery: TokenSigner) -> None:
        for capability, status in (("ai.chat", 403), ("ai.audit.read", 200), ("ai.content.manage", 200)):
            assert send(bakery, "GET", "/admin/api/ai/content/plan", capabilities=(capability,))[0] == status
