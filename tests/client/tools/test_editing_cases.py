"""The client for files edits a page as the table says that it shares with the GrapesJS plugin."""

from pathlib import Path
from typing import Any

import pytest

from fermata_client.document.html_file import HtmlFile
from fermata_client.tools.executor import HtmlFileExecutor
from tests.shared_cases.cases import read_cases
from tests.shared_cases.editing_cases import check_editing_case

CASES = read_cases("editing", "file")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_an_edit_gives_what_the_shared_table_says(tmp_path: Path, case: dict[str, Any]) -> None:
    page = case["page"]
    style = f"<style>\n{page['css']}\n</style>" if page["css"] else ""
    file = tmp_path / "index.html"
    file.write_text(f"<!doctype html>\n<html>\n<head>{style}</head>\n<body>{page['html']}</body>\n</html>\n")
    executor = HtmlFileExecutor(HtmlFile(file))
    number = iter(range(100))

    def execute(tool: str, tool_input: dict[str, Any]) -> dict[str, Any]:
        return executor({"toolName": tool, "input": tool_input, "effectKey": str(next(number))})

    check_editing_case(case, execute)
