"""The GrapesJS plugin edits a page as the table says that it shares with the client for files."""

from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor
from tests.shared_cases.cases import read_cases
from tests.shared_cases.editing_cases import check_editing_case

CASES = read_cases("editing", "grapesjs")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_an_edit_gives_what_the_shared_table_says(
    browser: Chromium, editor: GrapesEditor, case: dict[str, Any]
) -> None:
    editor.load(case["page"]["html"], case["page"]["css"])
    check_editing_case(case, editor.execute)
    assert editor.problems == []
