"""HTML from a model is cleaned as the table says that the client for files and the GrapesJS plugin share."""

from typing import Any

import pytest

from fermata_client.html.browser_parser import FragmentContext
from fermata_client.html.markdown_fences import strip_markdown_fence
from fermata_client.html.sanitize import sanitize_html
from tests.shared_cases.cases import read_cases
from tests.shared_cases.normalized_html import normalize_html

CASES = read_cases("sanitizer", "file")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_html_is_cleaned_as_the_shared_table_says(case: dict[str, Any]) -> None:
    fragment = sanitize_html(strip_markdown_fence(case["html"]), FragmentContext())
    assert normalize_html(fragment.markup.decode()) == normalize_html(case["is"])
    assert all(name in fragment.note for name in case["leftOut"])
    assert bool(fragment.note) == bool(case["leftOut"])
