"""No edit leaves a file that cannot be read, whatever a model sends: each can be undone."""

from pathlib import Path
from typing import Any

import pytest

from fermata_client.document.disk_files import NotAnHtmlFileError, check_output_path
from fermata_client.document.html_file import HtmlFile
from fermata_client.tools.executor import HtmlFileExecutor

PAGE = "{% if a %}\n<main>\n  <p>a</p>\n</main>\n{% endif %}\n"


def execute(page: Path, tool: str, tool_input: dict[str, Any]) -> dict[str, Any]:
    executor = HtmlFileExecutor(HtmlFile(page))
    output = executor({"toolName": tool, "input": tool_input, "effectKey": "t/1/1"})
    again = executor({"toolName": "read_document", "input": {}, "effectKey": "t/1/2"})
    assert again["ok"], again
    return output


@pytest.mark.parametrize(
    ("name", "tool", "tool_input", "reason"),
    [
        ("page.html", "insertHtml", {"parentId": "n1", "html": "<p>a\0b</p>"}, "page.html is not an HTML page"),
        ("page.html", "applyCss", {"css": ".a { content: '\0' }"}, "page.html is not an HTML page"),
        ("page.html", "updateNodeProps", {"nodeId": "n2", "patch": {"text": "\0"}}, "page.html is not an HTML page"),
        ("page.html", "write_code_asset", {"path": "a.css", "content": "\0", "type": "style"}, "a.css is no text"),
        ("page.njk", "deleteNode", {"nodeId": "n1"}, "page.njk is not an HTML page"),
        ("page.html", "insertHtml", {"parentId": "n1", "html": f"<p>{'x' * 600}</p>"}, "page.html is too large"),
        (
            "page.html",
            "write_code_asset",
            {"path": "a.js", "content": "x" * 600, "type": "script"},
            "a.js is too large",
        ),
    ],
)
def test_an_edit_that_could_not_be_undone_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tool: str, tool_input: dict[str, Any], reason: str
) -> None:
    monkeypatch.setattr("fermata_client.document.disk_files.MAX_FILE_BYTES", 500)
    (tmp_path / name).write_text(PAGE)
    output = execute(tmp_path / name, tool, tool_input)
    assert not output["ok"]
    assert output["error"].startswith(f"Nothing was changed, because this edit could not be undone: {reason}")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == PAGE


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("insertHtml", {"parentId": "n1", "html": "<p>\ud800</p>"}),
        ("applyCss", {"css": ".a { content: '\udc00' }"}),
        ("updateNodeProps", {"nodeId": "n2", "patch": {"title": "\ud83d \ude00"}}),
        ("write_code_asset", {"path": "a.css", "content": "/* \ud800 */", "type": "style"}),
        ("set_color_tokens", {"tokens": [{"slug": "a", "lightValue": "\ud800"}]}),
        ("renamePage", {"title": "\udfff"}),
        ("deleteNode", {"nodeId": "\ud800"}),
    ],
)
def test_half_a_character_is_never_the_end_of_a_command(tmp_path: Path, tool: str, tool_input: dict[str, Any]) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    execute(tmp_path / "page.html", tool, tool_input)
    assert all("\ud800" not in path.read_text() for path in tmp_path.iterdir())


def test_a_whole_character_of_two_halves_stays(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    execute(tmp_path / "page.html", "insertHtml", {"parentId": "n1", "html": "<p>\U0001f600</p>"})
    assert "\U0001f600" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["result.css", "result.md", "result.json"])
def test_a_copy_has_the_name_of_a_page(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotAnHtmlFileError, match=r"result\.html"):
        check_output_path(tmp_path / name)


@pytest.mark.parametrize("name", [".env", "Makefile", "notes.txt"])
def test_a_copy_replaces_no_file_that_is_no_page(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("SECRET=1\n")
    with pytest.raises(NotAnHtmlFileError, match=r"hidden file|no HTML page|no name of"):
        check_output_path(tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [("result", "<p>old</p>"), ("result.tpl", ""), ("result.html", "text")])
def test_a_copy_replaces_an_older_copy(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    check_output_path(tmp_path / name)
