"""A change of a document writes as many items as docs/scale.md counts with."""

from collections.abc import Sequence
from typing import Any

import pytest

from bench.scale_page import CONTENT_WRITES
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import update_document
from tests.unit.content.conftest import ADA
from tests.unit.content.test_documents import ABOUT, create_page, rename


def test_a_change_of_a_document_writes_as_many_items_as_scale_says(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_page(resources, space)
    write_items, sizes = resources.tables.write_items, list[int]()

    def count(*writes: Any) -> Sequence[Any] | None:
        sizes.append(len(writes))
        return write_items(*writes)

    monkeypatch.setattr(resources.tables, "write_items", count)
    update_document(resources, space, ABOUT, ADA, rename("About the bakery"))
    assert sizes == [CONTENT_WRITES]
