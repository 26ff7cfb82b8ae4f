"""Copy boto3 clients in place of creating them, which takes longer than most tests.

A copy has event handlers of its own, so that what a test registers or replaces in one client is not seen by another.
"""

import copy
import functools
from typing import Any

import boto3
import pytest
from botocore.hooks import EventAliaser, HierarchicalEmitter

from fermata.aws import resources


def copy_clients(patch: pytest.MonkeyPatch) -> None:
    """Let Resources take copies of one client of each service, unless a test has replaced boto3's own function."""
    create, boto3_client = resources._create_client, boto3.client

    def create_or_copy(service: Any) -> Any:
        return copy_client(_create_once(create, service)) if boto3.client is boto3_client else create(service)

    patch.setattr(resources, "_create_client", create_or_copy)


@functools.cache
def _create_once(create: Any, service: Any) -> Any:
    return create(service)


def copy_client(client: Any) -> Any:
    copied = object.__new__(type(client))  # copy.copy asks it for attributes before it has any
    copied.__dict__.update(client.__dict__)
    copied.meta, copied._endpoint = copy.copy(client.meta), copy.copy(client._endpoint)
    copied.meta.events = copied._endpoint._event_emitter = _copy_events(client.meta.events)
    return copied


def _copy_events(events: EventAliaser) -> EventAliaser:
    """Copy the events of a client with its handlers, and with the names that it has looked up (decision 0653)."""
    copied = EventAliaser(LateCopyOfHandlers(events._emitter), events._event_aliases)
    copied._alias_name_cache = events._alias_name_cache
    return copied


class LateCopyOfHandlers(HierarchicalEmitter):
    """Calls the handlers of another emitter, and has handlers of its own once some are registered or removed here."""

    def __init__(self, original: HierarchicalEmitter) -> None:
        self.__dict__.update(original.__dict__)
        self._has_own_handlers = False

    def _register_section(self, *given: Any, **named: Any) -> None:
        self._copy_handlers()
        super()._register_section(*given, **named)

    def unregister(self, *given: Any, **named: Any) -> None:
        self._copy_handlers()
        super().unregister(*given, **named)

    def _copy_handlers(self) -> None:
        if not self._has_own_handlers:
            self._handlers = copy.copy(self._handlers)
            self._unique_id_handlers = copy.copy(self._unique_id_handlers)
            self._has_own_handlers = True
