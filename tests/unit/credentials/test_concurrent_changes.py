"""Whatever two people do to the same credentials at once: labels and defaults lead to what is there, nowhere else."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, scope_defaults
from fermata.credentials.credential import Credential, label_sort_key
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from tests.faults import FaultScript
from tests.unit.resource_fixtures import empty_tables

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
WRITES = ("dynamodb.TransactWriteItems", "dynamodb.DeleteItem")
Act = Callable[[Resources, Credential, Credential], object]


def enter_credential(resources: Resources, label: str) -> Credential:
    return credential_store.create_credential(resources, ADA, "anthropic", "apiKey", label, "sk-ant-secret")


ACTS: dict[str, Act] = {
    "enters a taken label": lambda resources, one, two: enter_credential(resources, "One"),
    "enters a new label": lambda resources, one, two: enter_credential(resources, "Three"),
    "renames it": lambda resources, one, two: credential_store.update_credential(resources, ADA, one.id, "Three", None),
    "swaps the label": lambda resources, one, two: credential_store.update_credential(
        resources, ADA, two.id, "One", None
    ),
    "enters another key": lambda resources, one, two: credential_store.update_credential(
        resources, ADA, one.id, None, "sk-ant-newer"
    ),
    "renames it with another key": lambda resources, one, two: credential_store.update_credential(
        resources, ADA, one.id, "Four", "sk-ant-newer"
    ),
    "removes it": lambda resources, one, two: credential_store.delete_credential(resources, ADA, one.id),
    "removes the other": lambda resources, one, two: credential_store.delete_credential(resources, ADA, two.id),
    "makes it a default": lambda resources, one, two: scope_defaults.set_default(resources, ADA, "site", one.id, "m"),
    "makes the other a default": lambda resources, one, two: scope_defaults.set_default(
        resources, ADA, "site", two.id, "m"
    ),
    "fills the defaults": lambda resources, one, two: scope_defaults.set_default_if_absent(
        resources, ADA, "site", one.id, "m"
    ),
    "clears the default": lambda resources, one, two: scope_defaults.clear_default(resources, ADA, "site"),
}


def run_during(act: Act, resources: Resources, one: Credential, two: Credential) -> None:
    with contextlib.suppress(InvalidRequest, NotFound, Conflict):
        act(resources, one, two)


def check(resources: Resources) -> None:
    rows = resources.tables.query_items("settings", "t#bakery")
    credentials = [Credential.model_validate(row) for row in rows if row["sk"].startswith("credential#")]
    labels = {row["sk"]: row["credential"] for row in rows if row["sk"].startswith("label#")}
    assert labels == {label_sort_key(it.user, it.provider_id, it.display_label): it.id for it in credentials}
    used = {row["credential_id"] for row in rows if row["sk"].startswith("default#")}
    assert used <= {it.id for it in credentials}
    for it in credentials:
        assert credential_store.open_api_key(resources, "bakery", it.id, it.version).startswith("sk-ant-")


@pytest.mark.parametrize("first", ACTS, ids=lambda name: name.replace(" ", "-"))
def test_while_one_acts_another_does(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The second acts right before what the first has decided is written."""
    faults = FaultScript(resources, tmp_path, monkeypatch)
    for second in ACTS.values():
        empty_tables()
        one, two = enter_credential(resources, "One"), enter_credential(resources, "Two")
        scope_defaults.set_default(resources, ADA, "site", two.id, "m")

        def act(second: Act = second, one: Credential = one, two: Credential = two) -> None:
            faults.clear()
            run_during(second, resources, one, two)

        for write in WRITES:
            faults.interrupt(write, act)
        run_during(ACTS[first], resources, one, two)
        faults.clear()
        check(resources)
