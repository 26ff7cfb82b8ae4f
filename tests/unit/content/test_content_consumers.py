"""Every consumer of the outbox is told of a change, also if one before it fails."""

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_consumers import CONTENT_CONSUMERS, resolve_name, tell_content_consumers
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.outbox import ContentChange

CHANGE = ContentChange(SpaceKey("bakery", "shop"), DocumentKey("post", "rye"), 1, "create", "2026-01-01T00:00:00.000Z")
told: list[ContentChange] = []


def remember_change(_resources: Resources, change: ContentChange) -> None:
    told.append(change)


def refuse_change(_resources: Resources, _change: ContentChange) -> None:
    raise RuntimeError("the index is away")


def test_a_consumer_that_fails_keeps_no_other_from_being_told_and_lets_the_change_be_repeated(
    resources: Resources,
) -> None:
    told.clear()
    consumers = {"search": f"{__name__}:refuse_change", "webhooks": f"{__name__}:remember_change"}
    with pytest.raises(ExceptionGroup) as raised:
        tell_content_consumers(resources, CHANGE, consumers)
    assert told == [CHANGE]
    assert [(str(error), error.__notes__) for error in raised.value.exceptions] == [
        ("the index is away", ["The consumer is search."])
    ]


def test_every_consumer_that_is_named_exists() -> None:
    assert all(callable(resolve_name(path)) for path in CONTENT_CONSUMERS.values())
