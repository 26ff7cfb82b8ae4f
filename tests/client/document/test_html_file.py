"""Browser tools on a file: edits are saved before they are reported, made once, and never overwrite other changes."""

import stat
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor
from fermata_client.document.disk_files import NotAnHtmlFileError
from tests.client.html_strategies import BAKERY

PAGE = "<!doctype html>\n<title>T</title>\n<main>\n  <p>a</p>\n</main>\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "My Page.html"
    path.write_text(PAGE)
    return path


@pytest.fixture
def executor(file: Path) -> HtmlFileExecutor:
    return HtmlFileExecutor(HtmlFile(file))


NUMBERS = count(1)


def run_tool(executor: HtmlFileExecutor, name: str, effect: str = "", **arguments: Any) -> dict[str, Any]:
    number = next(NUMBERS)
    return executor(
        {"toolName": name, "requestId": f"r{number}", "effectKey": effect or f"e{number}", "input": arguments}
    )


def test_an_edit_is_on_disk_when_it_is_reported(executor: HtmlFileExecutor, file: Path) -> None:
    assert run_tool(executor, "insertHtml", parentId="n2", html="<p>b</p>")["data"]["nodeIds"] == ["n4"]
    assert file.read_text() == PAGE.replace("</p>\n", "</p>\n  <p>b</p>\n")


def test_what_others_changed_before_the_first_edit_is_no_edit(executor: HtmlFileExecutor, file: Path) -> None:
    at_start = executor.file.file_texts(file.name)
    file.write_text(PAGE + "<p>theirs</p>\n")
    assert executor.file.texts_before_edits(file.name, at_start) == executor.file.file_texts(file.name)
    file.write_text(theirs := PAGE + "<p>theirs too</p>\n")
    place = run_tool(executor, "read_document")["data"]["html"].split('<main uid="')[1].split('"')[0]
    assert run_tool(executor, "insertHtml", parentId=place, html="<p>b</p>")["ok"]
    assert executor.file.texts_before_edits(file.name, at_start) == {file.name: theirs}


def test_every_tool_answers_under_both_of_its_names(executor: HtmlFileExecutor) -> None:
    assert run_tool(executor, "site_read_document")["data"]["title"] == "T"
    assert run_tool(executor, "getNodeHtml", nodeId="n3")["data"] == {"html": '<p uid="n3">a</p>'}
    assert run_tool(executor, "site_get_node_html", nodeId="n3")["data"] == {"html": '<p uid="n3">a</p>'}
    assert run_tool(executor, "replaceNodeHtml", nodeId="n3", html="b")["data"] == {"nodeIds": [], "created": []}
    assert run_tool(executor, "applyCss", css="p { top: 0 }")["data"] == {"cssRulesCreated": 1, "cssRulesUpdated": 0}
    assert run_tool(executor, "site_apply_css", operation="merge", css="p { top: 1px }")["data"]["cssRulesUpdated"] == 1
    assert run_tool(executor, "deleteNode", nodeId="n3")["ok"]


def test_a_document_says_which_it_is(executor: HtmlFileExecutor) -> None:
    data = run_tool(executor, "read_document")["data"]
    assert data["document"] == {"type": "page", "id": "my-page"}
    assert run_tool(executor, "read_document", document=data["document"], part=1)["ok"]
    other = run_tool(executor, "read_document", document={"type": "page", "id": "other"})
    assert (other["ok"], "only one document" in other["error"]) == (False, True)
    assert "no part 3" in run_tool(executor, "read_document", part=3)["error"]


def test_the_same_effect_is_done_once_and_reported_the_same(executor: HtmlFileExecutor, file: Path) -> None:
    first = run_tool(executor, "insertHtml", "turn/1/c1", parentId="n2", html="<p>b</p>")
    after = file.read_text()
    assert run_tool(executor, "insertHtml", "turn/1/c1", parentId="n2", html="<p>b</p>") == first
    assert file.read_text() == after
    assert run_tool(executor, "insertHtml", "turn/1/c2", parentId="n2", html="<p>b</p>")["data"]["nodeIds"] == ["n5"]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("paint", {}, "Unknown tool: paint"),
        ("insertHtml", {"html": "<p>x</p>"}, "`parentId` is missing"),
        ("insertHtml", {"parentId": "n2", "html": "<p>x</p>", "index": -1}, "`index` must be"),
        ("deleteNode", {"nodeId": "n99"}, "read the document again"),
        ("applyCss", {"css": "nonsense"}, "no CSS rule"),
        ("applyCss", {"css": "p {}", "operation": "paint"}, "no operation `paint`"),
        ("replaceNodeHtml", {"nodeId": "n3", "html": "<script>1</script>"}, "Nothing is left"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    executor: HtmlFileExecutor, file: Path, name: str, arguments: dict[str, Any], error: str
) -> None:
    answer = run_tool(executor, name, **arguments)
    assert answer["ok"] is False
    assert error in answer["error"]
    assert file.read_text() == PAGE


def test_an_edit_by_another_person_is_kept_and_reported_to_the_model(executor: HtmlFileExecutor, file: Path) -> None:
    theirs = PAGE.replace("<p>a</p>", "<p>by hand</p>")
    file.write_text(theirs)
    answer = run_tool(executor, "deleteNode", nodeId="n3")
    assert (answer["ok"], answer["conflict"], "that change was kept" in answer["error"]) == (False, True, True)
    assert "-  <p>a</p>\n+  <p>by hand</p>" in answer["changes"]
    assert file.read_text() == theirs
    html = run_tool(executor, "read_document")["data"]["html"]
    assert '<p uid="n6">by hand</p>' in html  # no id of before, so an old one cannot hit something else
    assert run_tool(executor, "deleteNode", nodeId="n6")["ok"]


def test_a_file_that_vanished_is_an_error_the_model_reads(executor: HtmlFileExecutor, file: Path) -> None:
    file.unlink()
    assert "There is no file" in run_tool(executor, "read_document")["error"]


def error_texts(executor: HtmlFileExecutor) -> list[str]:
    """The error of every call, read and write, as things are on the disk."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_document", {}),
        ("insertHtml", {"parentId": "n2", "html": "<p>b</p>"}),
        ("write_code_asset", {"path": "js/" + "a" * 300 + ".js", "type": "script", "content": "1"}),
        ("write_code_asset", {"path": "a/" * 2_000 + "b.js", "type": "script", "content": "1"}),
        ("write_code_asset", {"path": "taken/b.js", "type": "script", "content": "1"}),
    ]
    return [answer["error"] for name, arguments in calls if not (answer := run_tool(executor, name, **arguments))["ok"]]


@pytest.mark.parametrize("harm", ["none", "gone", "folder", "bytes", "large"])
def test_no_error_reveals_the_path_of_the_page_to_the_model(harm: str, file: Path, tmp_path: Path) -> None:
    executor = HtmlFileExecutor(HtmlFile(file))
    (tmp_path / "taken").write_text("a file where a folder would have to be")
    if harm in ("gone", "folder"):
        file.unlink()
    if harm == "folder":
        file.mkdir()
    if harm in ("bytes", "large"):
        file.write_bytes(b"\xff" if harm == "bytes" else b"x" * 2_000_001)
    errors = error_texts(executor)
    assert len(errors) >= 3
    assert [error for error in errors if str(tmp_path) in error or tmp_path.name in error] == []


def test_a_page_that_names_a_file_no_disk_could_hold_is_read_without_it(file: Path) -> None:
    file.write_text(f'<link rel="stylesheet" href="{"a" * 300}.css"><main>x</main>')
    assert run_tool(HtmlFileExecutor(HtmlFile(file)), "read_document")["ok"]


def test_with_an_output_file_the_original_stays(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "build" / "page.html"
    page = HtmlFile(file, out)
    executor = HtmlFileExecutor(page)
    assert run_tool(executor, "read_document")["ok"]
    assert not out.exists()
    run_tool(executor, "deleteNode", nodeId="n3")
    assert file.read_text() == PAGE
    assert out.read_text() == PAGE.replace("  <p>a</p>\n", "")
    assert run_tool(executor, "read_document")["data"]["document"]["id"] == "my-page"


def test_without_any_edit_the_output_file_is_a_copy(file: Path, tmp_path: Path) -> None:
    HtmlFile(file, tmp_path / "copy.html").write_copy()
    assert (tmp_path / "copy.html").read_bytes() == file.read_bytes()


def test_permissions_and_links_survive_an_edit(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.html"
    link.symlink_to(file)
    run_tool(HtmlFileExecutor(HtmlFile(link)), "deleteNode", nodeId="n3")
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "<p>" not in file.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["My Page.html", "link.html"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone.html", None, "There is no file"),
        ("latin.html", b"<p>caf\xe9</p>", "not UTF-8"),
        ("big.html", b"<p>" + b"x" * 2_000_000, "too large"),
        ("notes.txt", b"just words", "not an HTML page"),
        ("picture.png", b"\x00\x01<p>", "not an HTML page"),
    ],
)
def test_a_file_that_is_no_page_is_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NotAnHtmlFileError, match=reason):
        HtmlFile(path)


def test_a_folder_is_not_a_page(tmp_path: Path) -> None:
    with pytest.raises(NotAnHtmlFileError, match="not a file"):
        HtmlFile(tmp_path)


def test_an_empty_file_can_be_filled(tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_bytes(b"")
    executor = HtmlFileExecutor(HtmlFile(path))
    assert executor.snapshot()["page"]["rootNodeId"] == "document"
    assert run_tool(executor, "insertHtml", parentId="document", html="<h1>Hi</h1>")["data"]["nodeIds"] == ["n1"]
    assert path.read_text() == "<h1>Hi</h1>\n"


def test_the_demo_page_takes_a_whole_session(tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_bytes(BAKERY.read_bytes())
    executor = HtmlFileExecutor(HtmlFile(path))
    main = next(e.uid for e in executor.file.document.tree.elements if e.tag == "main")
    section = '<section class="section pricing" id="pricing">\n  <h2>Pricing</h2>\n</section>'
    inserted = run_tool(executor, "insertHtml", parentId=main, index=3, html=section)
    assert inserted["data"]["created"][0]["classes"] == ["section", "pricing"]
    assert run_tool(executor, "applyCss", css=".pricing h2 { color: var(--color-crust) }")["ok"]
    assert run_tool(executor, "deleteNode", nodeId=inserted["data"]["nodeIds"][0])["ok"]
    lines = path.read_text().splitlines()
    assert [line for line in lines if line not in BAKERY.read_text().splitlines()] == [
        "      .pricing h2 { color: var(--color-crust) }"
    ]
