"""Two changes of the same credentials at once leave labels and defaults that point at existing credentials."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, scope_defaults
from fermata.credentials.credential import Credential, label_sort_key
from fermata.credentials.open_credential import open_api_key
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from tests.faults import FaultScript
from tests.stored_rows import clear_tables

pytestmark = pytest.mark.exhaustive

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
WRITES = ("dynamodb.TransactWriteItems", "dynamodb.PutItem")
Change = Callable[[Resources, Credential, Credential], object]
"""What a user does to two credentials."""


def enter_credential(resources: Resources, label: str) -> Credential:
    return credential_store.create_credential(resources, ADA, "anthropic", "apiKey", label, "sk-ant-secret")


def update_credential(resources: Resources, credential: Credential, label: str | None, key: str | None = None) -> None:
    credential_store.update_credential(resources, ADA, credential.id, label, key)


def delete_credential(resources: Resources, credential: Credential) -> None:
    credential_store.delete_credential(resources, ADA, credential.id)


def set_default(resources: Resources, credential: Credential) -> None:
    scope_defaults.set_default(resources, ADA, "site", credential.id, "m")


def set_missing_default(resources: Resources, credential: Credential) -> None:
    scope_defaults.set_default_if_absent(resources, ADA, "site", credential.id, "m")


CHANGES: dict[str, Change] = {
    "enters a taken label": lambda resources, own, other: enter_credential(resources, "One"),
    "enters a new label": lambda resources, own, other: enter_credential(resources, "Three"),
    "renames it": lambda resources, own, other: update_credential(resources, own, "Three"),
    "swaps the label": lambda resources, own, other: update_credential(resources, other, "One"),
    "enters another key": lambda resources, own, other: update_credential(resources, own, None, "sk-ant-newer"),
    "renames it with another key": lambda resources, own, other: update_credential(
        resources, own, "Four", "sk-ant-newer"
    ),
    "removes it": lambda resources, own, other: delete_credential(resources, own),
    "removes the other": lambda resources, own, other: delete_credential(resources, other),
    "makes it a default": lambda resources, own, other: set_default(resources, own),
    "makes the other a default": lambda resources, own, other: set_default(resources, other),
    "fills the defaults": lambda resources, own, other: set_missing_default(resources, own),
    "clears the default": lambda resources, own, other: scope_defaults.clear_default(resources, ADA, "site"),
}


def try_change(change: Change, resources: Resources, own: Credential, other: Credential) -> None:
    with contextlib.suppress(InvalidRequest, NotFound, Conflict):
        change(resources, own, other)


def check_consistency(resources: Resources) -> None:
    rows = resources.tables.query_items("settings", "t#bakery")
    credentials = [Credential.model_validate(row) for row in rows if row["sk"].startswith("credential#")]
    label_rows = {row["sk"]: row["credential"] for row in rows if row["sk"].startswith("label#")}
    assert label_rows == {label_key(credential): credential.id for credential in credentials}
    default_ids = {row["credential_id"] for row in rows if row["sk"].startswith("default#") and "credential_id" in row}
    assert default_ids <= {credential.id for credential in credentials}
    for credential in credentials:
        key = open_api_key(resources, "bakery", credential.id, credential.version)
        assert key.startswith("sk-ant-")


def label_key(credential: Credential) -> str:
    return label_sort_key(credential.user, credential.provider_id, credential.display_label)


@pytest.mark.parametrize("first", CHANGES, ids=lambda name: name.replace(" ", "-"))
def test_two_changes_at_once_leave_consistent_rows(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The second change runs right before the first one writes what it has decided."""
    faults = FaultScript(resources, tmp_path, monkeypatch)
    for second in CHANGES.values():
        clear_tables()
        own, other = enter_credential(resources, "One"), enter_credential(resources, "Two")
        set_default(resources, other)

        def interrupt(second: Change = second, own: Credential = own, other: Credential = other) -> None:
            faults.clear()
            try_change(second, resources, own, other)

        for write in WRITES:
            faults.interrupt(write, interrupt)
        try_change(CHANGES[first], resources, own, other)
        faults.clear()
        check_consistency(resources)
