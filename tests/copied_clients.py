"""Copy boto3 clients in place of creating them, which takes longer than most tests.

A copy has event handlers of its own, so that what a test registers or replaces in one client is not seen by another.
"""

import copy
import functools
from typing import Any

import boto3
import pytest

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
    copied.meta.events = copied._endpoint._event_emitter = copy.copy(client.meta.events)
    return copied
