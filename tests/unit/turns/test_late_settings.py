"""Writes of settings that land again, more than ten minutes later: no copy replaces what was set since."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.definitions import tenant_secrets
from fermata.agents.definitions.definition_store import remove_agent
from fermata.agents.policy_store import set_policy
from fermata.credentials import credential_store, scope_defaults
from fermata.credentials.open_credential import open_api_key, read_credential
from fermata.domain.errors import Conflict, NotFound
from fermata.hosts import registry
from fermata.pricing.catalogue import PriceCatalogue, store_catalogue
from fermata.remote_tools.tool_registry import register_tool, remove_tool
from fermata.turns.read import reader_presence
from fermata.turns.turn import Turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.webhooks.webhook_registry import add_webhook, remove_webhook
from fermata.wire.auth.tenant_store import rotate_tenant_secret, update_tenant
from tests.agent_definitions import make_definition, push_definitions
from tests.late_writes import WriteRecorder, read_rows
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import Stage

TABLES = ("settings", "pricing", "bridges")
MUCH_LATER_SECONDS = 700
"""Longer than DynamoDB knows the token of a transaction."""


@pytest.fixture
def check_copies(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns a function that lets every write so far land again, and checks that none changes anything."""
    recorder = WriteRecorder(stage.resources, monkeypatch, transactions=True)

    def check() -> None:
        stage.pass_time(MUCH_LATER_SECONDS)
        before = read_rows(TABLES)

        def check_unchanged() -> None:
            after = read_rows(TABLES)
            assert {key for key in before | after if before.get(key) != after.get(key)} == set()

        recorder.land_again(check_unchanged)

    return check


def enter_credential(stage: Stage, label: str) -> str:
    return credential_store.create_credential(
        stage.resources, stage.caller, "anthropic", "apiKey", label, "sk-ant-secret"
    ).id


def test_a_default_that_was_changed_removed_or_set_anew_stays_so(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    resources, caller = stage.resources, stage.caller
    first, second = enter_credential(stage, "One"), enter_credential(stage, "Two")
    scope_defaults.set_default_if_absent(resources, caller, "site", first, "m1")
    scope_defaults.set_default(resources, caller, "site", second, "m2")
    check_copies()
    scope_defaults.set_default(resources, caller, "site", first, "m1")
    check_copies()
    scope_defaults.clear_default(resources, caller, "site")
    check_copies()
    assert scope_defaults.get_defaults_view(resources, caller.tenant) == {}
    scope_defaults.set_default(resources, caller, "site", second, "m3")
    check_copies()
    default = scope_defaults.read_default(resources, caller.tenant, "site")
    assert default is not None
    assert default.model_id == "m3"


def test_a_default_that_another_request_changes_meanwhile_is_set_behind_it(stage: Stage) -> None:
    resources, caller = stage.resources, stage.caller
    credential = enter_credential(stage, "One")
    stage.faults.interrupt(
        "dynamodb.TransactWriteItems",
        lambda: scope_defaults.set_default(resources, caller, "site", credential, "theirs"),
    )
    scope_defaults.set_default(resources, caller, "site", credential, "ours")
    default = scope_defaults.read_default(resources, caller.tenant, "site")
    assert default is not None
    assert default.model_id == "ours"


def test_a_credential_that_was_renamed_back_keyed_anew_or_removed_stays_so(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    resources, caller = stage.resources, stage.caller
    credential = enter_credential(stage, "One")
    for label, key in (("Two", None), ("One", None), (None, "sk-ant-new"), (None, "sk-ant-newer"), ("Two", None)):
        credential_store.update_credential(resources, caller, credential, label, key)
        check_copies()
    assert open_api_key(resources, caller.tenant, credential, 3) == "sk-ant-newer"
    credential_store.delete_credential(resources, caller, credential)
    check_copies()
    assert read_credential(resources, caller.tenant, credential) is None
    enter_credential(stage, "One")
    check_copies()


def test_a_removal_that_meets_another_one_asks_to_be_repeated(stage: Stage) -> None:
    resources, caller = stage.resources, stage.caller
    first, second = enter_credential(stage, "One"), enter_credential(stage, "Two")
    stage.faults.interrupt(
        "dynamodb.TransactWriteItems", lambda: credential_store.delete_credential(resources, caller, second)
    )
    with pytest.raises(Conflict, match="try again"):
        credential_store.delete_credential(resources, caller, first)
    credential_store.delete_credential(resources, caller, first)
    assert read_credential(resources, caller.tenant, first) is None


def test_a_credential_that_is_entered_while_another_is_removed_is_stored(stage: Stage) -> None:
    resources, caller = stage.resources, stage.caller
    first = enter_credential(stage, "One")
    stage.faults.interrupt(
        "dynamodb.TransactWriteItems", lambda: credential_store.delete_credential(resources, caller, first)
    )
    second = enter_credential(stage, "One")
    assert read_credential(resources, caller.tenant, second) is not None


def test_a_host_that_was_moved_removed_or_registered_anew_stays_so(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    resources, tenant = stage.resources, stage.caller.tenant
    make_tenant(resources, tenant)
    for url in ("https://8.8.8.8", "https://1.1.1.1", "https://8.8.8.8"):
        registry.register_host(resources, tenant, url)
        check_copies()
    registry.remove_host(resources, tenant)
    check_copies()
    assert registry.read_host(resources, tenant) is None
    registry.register_host(resources, tenant, "https://1.1.1.1")
    check_copies()
    registry.rotate_host_secret(resources, tenant)
    registry.remove_host(resources, tenant)
    check_copies()


def test_a_tenant_and_its_budgets_stay_as_they_were_set_last(stage: Stage, check_copies: Callable[[], None]) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    for origins in (["https://one.example"], ["https://two.example"], ["https://one.example"], []):
        update_tenant(resources, caller.tenant, origins=origins)
        check_copies()
    rotate_tenant_secret(resources, caller.tenant)
    for limit in (5, 50, 5):
        set_budgets(resources, caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(limit))))
        check_copies()


def test_a_secret_that_was_replaced_or_removed_stays_so(stage: Stage, check_copies: Callable[[], None]) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    for value in ("one", "two", "one"):
        tenant_secrets.set_secret(resources, caller, "KEY", value)
        check_copies()
    tenant_secrets.remove_secret(resources, caller, "KEY")
    check_copies()
    assert tenant_secrets.list_secret_views(resources, caller.tenant) == []
    with pytest.raises(NotFound):
        tenant_secrets.remove_secret(resources, caller, "KEY")
    tenant_secrets.set_secret(resources, caller, "KEY", "three")
    check_copies()
    assert tenant_secrets.open_tenant_secret(resources, caller.tenant, "KEY") == "three"


def test_of_secrets_that_were_removed_long_ago_nothing_is_left(stage: Stage) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    tenant_secrets.set_secret(resources, caller, "OLD", "one")
    tenant_secrets.remove_secret(resources, caller, "OLD")
    stage.pass_time(86_401)
    tenant_secrets.set_secret(resources, caller, "NEW", "two")
    names = [key.rpartition("#")[2] for key in read_rows(["settings"]) if " secret#" in key]
    assert names == ["NEW"]


def test_a_policy_stays_as_it_was_set_last(stage: Stage, check_copies: Callable[[], None]) -> None:
    for seconds in (60, 90, 60):
        set_policy(stage.resources, stage.caller, ApprovalPolicy(wait_seconds=seconds))
        check_copies()


def test_agents_stay_as_they_were_pushed_last(stage: Stage, check_copies: Callable[[], None]) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    for names in (("one",), ("one", "two"), ("one",)):
        push_definitions(resources, caller, *map(make_definition, names))
        check_copies()
    remove_agent(resources, caller, "one")
    check_copies()


def test_webhooks_stay_as_they_were_set_last(stage: Stage, check_copies: Callable[[], None]) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    ids = [str(add_webhook(resources, caller, "https://8.8.8.8/hook", ()).view["id"]) for _ in range(2)]
    check_copies()
    for one in ids:
        remove_webhook(resources, caller, one)
        check_copies()


def test_remote_tools_stay_as_they_were_registered_last(stage: Stage, check_copies: Callable[[], None]) -> None:
    resources, caller = stage.resources, stage.caller
    make_tenant(resources, caller.tenant)
    for description in ("One.", "Two.", "One."):
        manifest = make_manifest_json(description=description)
        register_tool(resources, caller, manifest, "https://8.8.8.8/tool", replace=True)
        check_copies()
    for _ in range(2):
        remove_tool(resources, caller, "pim.getProduct")
        check_copies()
        register_tool(resources, caller, make_manifest_json(), "https://8.8.8.8/tool")
        check_copies()


def test_newer_prices_stay(stage: Stage, check_copies: Callable[[], None]) -> None:
    for _ in range(2):
        stage.pass_time(60)
        store_catalogue(
            stage.resources, PriceCatalogue(refreshed_at=int(stage.resources.clock.time()), priced_models={})
        )
        check_copies()


def test_a_reader_that_has_returned_has_not_departed(stage: Stage, check_copies: Callable[[], None]) -> None:
    turn = stage.start_turn()
    reader_presence.mark_reader_departed(stage.resources, turn, stage.resources.clock.time())
    stage.pass_time(1)
    reader_presence.mark_reader_present(stage.resources, turn, stage.resources.clock.time())
    check_copies()
    assert not is_stored_as_departed(stage, turn)
    reader_presence.mark_reader_departed(stage.resources, turn, stage.resources.clock.time())
    check_copies()
    assert is_stored_as_departed(stage, turn)


def is_stored_as_departed(stage: Stage, turn: Turn) -> bool:
    """Read what is stored: after the copies, the presence is too old to count."""
    item = stage.resources.tables.get_item(stage.resources.settings.bridges_table, turn.pk, "departed")
    assert item is not None
    return bool(item["departed"])
