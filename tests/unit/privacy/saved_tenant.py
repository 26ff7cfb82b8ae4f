"""Fill a tenant once a file, and give every test the tenant as it was then.

def stage(resources, monkeypatch, tenant: SavedTenant) -> Stage:
    return tenant.load(resources, monkeypatch, lambda: fill(resources, monkeypatch))
"""

import copy
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeKey, s3_backends

from fermata.aws.resources import Resources
from tests.stored_rows import SavedRows, restore_rows, save_rows
from tests.unit.turns.stage import FakeWorkflow, Stage


class SavedTenant:
    """What the tables, the bucket and the stage held after the first test had filled them."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._members: dict[str, Any] = {}
        self._rows: SavedRows = {}
        self._objects: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
        self._now = 0.0

    def load(self, resources: Resources, monkeypatch: pytest.MonkeyPatch, fill: Callable[[], Stage]) -> Stage:
        """Fill the tenant, or give it back as it was, with no data of the tests in between."""
        if self._stage is None:
            self._stage = fill()
            self._save(self._stage)
            return self._stage
        stage = Stage(resources, monkeypatch, caller=self._stage.caller)
        self._restore(stage)
        return stage

    def _save(self, stage: Stage) -> None:
        self._members = _copy_members(stage)
        self._now = stage.clock.now
        self._rows = save_rows()
        keys = _get_bucket(stage.resources).keys
        self._objects = {
            name: [(type(version), version.__getstate__()) for version in keys.getlist(name)] for name in list(keys)
        }

    def _restore(self, stage: Stage) -> None:
        stage.__dict__.update(self._members)
        self._members = _copy_members(stage)
        stage.resources.__dict__["workflow"] = stage.workflow
        stage.clock.now = self._now
        restore_rows(self._rows)
        keys = _get_bucket(stage.resources).keys
        for name in list(keys):
            keys.pop(name)
        for name, versions in self._objects.items():
            keys.setlist(name, [_make_version(*version) for version in versions])


def _copy_members(stage: Stage) -> dict[str, Any]:
    """Return what a test changes in the stage, except for the driver's scripts, of which none are left."""
    assert not stage.driver.scripts
    members = {"conversation", "credential", "_turn", "_waiting_token", "tokens", "entry_numbers"}
    workflow = FakeWorkflow()
    for field in fields(FakeWorkflow):
        if field.name != "heartbeat_sent":
            setattr(workflow, field.name, copy.copy(getattr(stage.workflow, field.name)))
    return {name: copy.copy(stage.__dict__[name]) for name in members} | {"workflow": workflow}


def _make_version(kind: Any, state: dict[str, Any]) -> Any:
    """Make an object's version or delete marker of moto again, whose content another test may have closed."""
    made: Any = kind.__new__(kind)  # moto closes what it knows of
    if issubclass(kind, FakeKey):
        made.__setstate__(dict(state))
    else:
        made.__dict__.update(state)
    return made


def _get_bucket(resources: Resources) -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["global"].buckets[resources.settings.bucket]
