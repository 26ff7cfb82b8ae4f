"""A tenant, a host, an API key and a job that a newer version has stored keep what an older one does not know."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.hosts import registry
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.privacy_job import create_privacy_job, get_privacy_job, save_privacy_job
from fermata.wire.auth.api_key_store import create_api_key, list_api_keys, revoke_api_key, rotate_api_key
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import describe_tenant, rotate_tenant_secret, update_tenant
from tests.tenant_tokens import make_tenant
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
ADMINISTRATOR = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat", "ai.keys"}))
ADDED = "of_a_newer_version"
PARTS = ("secrets", "limits")
"""Members that are records themselves, or lists of them."""


class StoredRecord(NamedTuple):
    """A record in the settings table: where it is, what changes it, and what people see of it."""

    partition: str
    sort_key: str
    change: Callable[[], object]
    describe: Callable[[], object]


def make_tenant_record(resources: Resources) -> StoredRecord:
    def change() -> None:
        update_tenant(resources, "bakery", dialect="instatic", limits=TenantLimits(max_rounds=7))
        rotate_tenant_secret(resources, "bakery")

    return StoredRecord("t#bakery", "tenant", change, lambda: describe_tenant(resources, "bakery"))


def make_host_record(resources: Resources) -> StoredRecord:
    registry.register_host(resources, "bakery", "https://8.8.8.8/cms")

    def change() -> None:
        registry.register_host(resources, "bakery", "https://8.8.4.4/cms")
        registry.rotate_host_secret(resources, "bakery")

    return StoredRecord("t#bakery", "host", change, lambda: registry.describe_host(resources, "bakery"))


def make_key_record(resources: Resources) -> StoredRecord:
    key, _ = create_api_key(resources, ADMINISTRATOR, "shop", ["ai.chat"])

    def change() -> None:
        rotate_api_key(resources, ADMINISTRATOR, key.id)
        revoke_api_key(resources, "bakery", key.id)

    return StoredRecord("t#bakery#apikeys", key.id, change, lambda: list_api_keys(resources, "bakery")[0].to_view(None))


def make_job_record(resources: Resources) -> StoredRecord:
    subject = DataSubject(kind="user", tenant="bakery", id="ada")
    job = create_privacy_job(resources, "erasure", subject)

    def read() -> Any:
        return get_privacy_job(resources, "bakery", job.id, "erasure")

    def change() -> None:
        save_privacy_job(resources, read().model_copy(update={"state": "running"}))

    return StoredRecord(f"privacy#{job.tenant_hash}", job.id, change, lambda: read().to_view())


MAKERS = (make_tenant_record, make_host_record, make_key_record, make_job_record)


def iter_records(row: Item) -> Iterator[Any]:
    """Yield a row and the records in it."""
    yield row
    for part in map(row.get, PARTS):
        yield from (part if isinstance(part, list) else [part] if part is not None else [])


@pytest.mark.parametrize("make", MAKERS)
def test_an_older_version_that_changes_a_record_keeps_and_shows_nothing_of_what_it_does_not_know(
    resources: Resources, make: Callable[[Resources], StoredRecord]
) -> None:
    make_tenant(resources, "bakery")
    record = make(resources)
    before = resources.tables.get_item("settings", record.partition, record.sort_key)
    assert before is not None
    for part in iter_records(before):
        part[ADDED] = b"\xff sealed by another version"
    resources.tables.write_items(Put("settings", before))
    record.change()
    after = resources.tables.get_item("settings", record.partition, record.sort_key)
    assert after is not None
    assert after["version"] > before["version"]
    # A rotation adds a secret of this version, and the row may keep no older one.
    assert all(ADDED in part for part in (after, *([after["limits"]] if "limits" in after else [])))
    assert any(ADDED in secret for secret in after.get("secrets", [before]))
    shown = json.dumps(record.describe())
    assert ADDED not in shown
    assert "ofANewerVersion" not in shown
