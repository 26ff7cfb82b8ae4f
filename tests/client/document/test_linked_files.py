"""A page with the files of its folder: edits stay in the folder, and never overwrite other changes."""

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor
from fermata_client.document.disk_files import NotAnHtmlFileError
from fermata_client.document.undo_hunk import content_digest

PAGE = (
    '<head>\n  <title>T</title>\n  <link rel="stylesheet" href="css/site.css">\n  <script src="app.js"></script>\n'
    "</head>\n<body>\n  <p class=card>a</p>\n</body>\n"
)
CSS = ".card {\n  top: 0;\n}\n"
NUMBERS = count(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "site"
    (home / "css").mkdir(parents=True)
    (home / "index.html").write_text(PAGE)
    (home / "css" / "site.css").write_text(CSS)
    (home / "app.js").write_text("let a = 1;\n")
    return home


def open_file(folder: Path, **further_arguments: Any) -> HtmlFileExecutor:
    return HtmlFileExecutor(HtmlFile(folder / "index.html", **further_arguments))


def run_tool(executor: HtmlFileExecutor, name: str, revision: str = "", **arguments: Any) -> dict[str, Any]:
    request = {"toolName": name, "requestId": f"r{next(NUMBERS)}", "input": arguments}
    return executor(request | ({"revision": revision} if revision else {}))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rules_of_a_linked_sheet_are_read_and_edited_beside_the_page(folder: Path) -> None:
    executor = open_file(folder)
    assert run_tool(executor, "read_document")["data"]["css"] == CSS.strip()
    assert run_tool(executor, "applyCss", css=".card { top: 1px }")["data"] == {
        "cssRulesCreated": 0,
        "cssRulesUpdated": 1,
    }
    assert bytes_of(folder) == {
        "index.html": PAGE.encode(),
        "css/site.css": b".card {\n  top: 1px;\n}\n",
        "app.js": b"let a = 1;\n",
    }


def test_with_an_output_folder_nothing_of_the_original_changes(folder: Path, tmp_path: Path) -> None:
    before, out = bytes_of(folder), tmp_path / "build" / "index.html"
    executor = open_file(folder, out=out)
    assert run_tool(executor, "applyCss", css=".card { top: 1px }")["ok"]
    assert run_tool(executor, "applyCss", css=".card { top: 2px }")["ok"]
    assert run_tool(executor, "write_code_asset", path="new.js", type="script", content="1")["ok"]
    executor.file.write_copy()
    assert bytes_of(folder) == before
    built = bytes_of(out.parent)
    assert built.keys() == {"index.html", "css/site.css", "app.js", "new.js"}
    assert built["css/site.css"] == b".card {\n  top: 2px;\n}\n"


def test_a_copy_in_the_same_folder_leaves_what_both_pages_load(folder: Path) -> None:
    executor = open_file(folder, out=folder / "copy.html")
    assert run_tool(executor, "applyCss", css=".card { top: 1px }")["ok"]
    assert (
        "cannot be changed" in run_tool(executor, "write_code_asset", path="app.js", type="script", content="")["error"]
    )
    for content in ("let mine;", "let mine = 1;"):
        assert run_tool(executor, "write_code_asset", path="mine.js", type="script", content=content)["ok"]
    after = bytes_of(folder)
    assert after["mine.js"] == b"let mine = 1;"
    assert after["css/site.css"] == CSS.encode()
    assert b".card { top: 1px }" in after["copy.html"]
    assert after["index.html"] == PAGE.encode()


def test_a_sheet_can_be_named_for_new_rules(folder: Path) -> None:
    (folder / "index.html").write_text(PAGE.replace("</head>", "<style>b { top: 0 }</style></head>"))
    executor = open_file(folder, css=str(folder / "css" / "site.css"))
    assert run_tool(executor, "applyCss", css=".new { top: 0 }")["ok"]
    assert (folder / "css" / "site.css").read_text() == CSS + ".new { top: 0 }\n"
    with pytest.raises(NotAnHtmlFileError, match=r"does not load .*other\.css from its own folder"):
        open_file(folder, css="other.css")


# The folder is the limit


def test_nothing_behind_a_symbolic_link_out_of_the_folder_is_read(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.css"
    secret.write_text(".secret { top: 0 }")
    (folder / "css" / "site.css").unlink()
    (folder / "css" / "site.css").symlink_to(secret)
    executor = open_file(folder)
    assert "secret" not in str(run_tool(executor, "read_document")["data"])
    assert "css/site.css" in run_tool(executor, "read_code_asset", path="css/site.css")["error"]
    wrote = run_tool(executor, "write_code_asset", path="css/site.css", type="style", content=".x { top: 0 }")
    assert not wrote["ok"]
    assert secret.read_text() == ".secret { top: 0 }"


def test_nothing_is_written_through_a_linked_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "js").symlink_to(tmp_path / "elsewhere")
    answer = run_tool(open_file(folder), "write_code_asset", path="js/x.js", type="script", content="1")
    assert (answer["ok"], "leads out of the folder" in answer["error"]) == (False, True)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (folder / "index.html").read_text() == PAGE


@pytest.mark.parametrize("address", ["../up.css", "/etc/hosts", "https://elsewhere.example/a.css", "css/../../up.css"])
def test_a_page_that_links_out_of_its_folder_is_edited_without_it(folder: Path, address: str) -> None:
    (folder.parent / "up.css").write_text(".up { top: 0 }")
    (folder / "index.html").write_text(PAGE.replace("css/site.css", address))
    executor = open_file(folder)
    assert "up" not in run_tool(executor, "read_document")["data"]["css"]
    assert run_tool(executor, "applyCss", css=".up { top: 1px }")["ok"]
    assert (folder.parent / "up.css").read_text() == ".up { top: 0 }"


def test_with_a_base_for_addresses_no_file_belongs_to_the_page(folder: Path) -> None:
    (folder / "index.html").write_text(PAGE.replace("<head>", '<head><base href="https://elsewhere.example/">'))
    assert open_file(folder).file.document.files == {}


def test_a_file_that_the_page_does_not_load_is_never_overwritten(folder: Path) -> None:
    (folder / "other.js").write_text("theirs")
    answer = run_tool(open_file(folder), "write_code_asset", path="other.js", type="script", content="mine")
    assert (answer["ok"], "There is a other.js already" in answer["error"]) == (False, True)
    assert (folder / "other.js").read_text() == "theirs"
    assert (folder / "index.html").read_text() == PAGE


def test_a_file_that_is_no_text_is_left_out(folder: Path) -> None:
    (folder / "css" / "site.css").write_bytes(b"\xff\xfe.card")
    executor = open_file(folder)
    assert [asset["path"] for asset in run_tool(executor, "list_code_assets")["data"]["assets"]] == ["app.js"]


def test_a_file_that_cannot_be_written_leaves_everything_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", str(folder / "css" / "site.css"))

    executor = open_file(folder)
    before = bytes_of(folder)
    monkeypatch.setattr("fermata_client.document.disk_writes.os.fsync", full)
    answer = run_tool(executor, "applyCss", css=".card { top: 1px }")
    assert (answer["ok"], "No space left on device" in answer["error"], "inverse" in answer) == (False, True, False)
    assert answer["revision"] == open_file(folder).file.document.revision
    assert bytes_of(folder) == before


# Revisions, conflicts and the way back


def test_the_revision_names_the_bytes_of_all_files(folder: Path) -> None:
    executor = open_file(folder)
    first = run_tool(executor, "read_document")["revision"]
    edited = run_tool(executor, "applyCss", css=".card { top: 1px }")
    assert edited["revision"] != first
    back = run_tool(executor, "restore", edited["revision"], **edited["inverse"][0]["input"])
    assert (back["ok"], back["revision"]) == (True, first)
    assert open_file(folder).file.document.revision == first


def test_a_call_planned_on_another_revision_is_a_conflict_that_says_what_changed(folder: Path) -> None:
    executor = open_file(folder)
    first = run_tool(executor, "read_document")["revision"]
    (folder / "css" / "site.css").write_text(CSS.replace("0", "7px"))
    answer = run_tool(executor, "deleteNode", first, nodeId="n6")
    assert (answer["ok"], answer["conflict"]) == (False, True)
    assert "-  top: 0;\n+  top: 7px;" in answer["changes"]
    assert answer["revision"] == executor.file.document.revision != first
    late = run_tool(executor, "deleteNode", first, nodeId="n6")
    assert (late["conflict"], "+  top: 7px;" in late["changes"]) == (True, True)
    paragraph = next(e.uid for e in executor.file.document.tree.elements if e.tag == "p")
    assert run_tool(executor, "deleteNode", answer["revision"], nodeId=paragraph)["ok"]


def test_a_call_that_read_the_newest_revision_is_carried_out_in_a_new_program(folder: Path) -> None:
    revision = run_tool(open_file(folder), "read_document")["revision"]
    assert run_tool(open_file(folder), "applyCss", revision, css=".card { top: 1px }")["ok"]


def test_an_undo_in_a_new_program_takes_the_page_and_its_files_back(folder: Path) -> None:
    before, inverses = bytes_of(folder), []
    executor = open_file(folder)
    for name, arguments in (
        ("write_code_asset", {"path": "js/menu.js", "type": "script", "content": "let m;\n"}),
        ("applyCss", {"css": ".card { top: 1px } .new { top: 0 }"}),
        ("duplicateNode", {"nodeId": "n6", "count": 2}),
        ("set_color_tokens", {"tokens": [{"slug": "brand", "lightValue": "#123"}]}),
    ):
        answer = run_tool(executor, name, **arguments)
        inverses.append(answer["inverse"])
    for inverse in reversed(inverses):
        for call in inverse:
            assert run_tool(open_file(folder), call["tool"], "long ago", **call["input"])["ok"]
    assert bytes_of(folder) == before


def test_an_edit_of_a_file_that_the_page_stopped_loading_is_undone_too(folder: Path) -> None:
    before, executor = bytes_of(folder), open_file(folder)
    created = run_tool(executor, "write_code_asset", path="new.css", type="style", content=".a { top: 0 }\n")
    link = executor.file.document.tree.elements[-3].uid
    assert 'href="new.css"' in run_tool(executor, "getNodeHtml", nodeId=link)["data"]["html"]
    deleted = run_tool(executor, "deleteNode", nodeId=link)
    assert open_file(folder).file.document.revision == deleted["revision"]
    refused = run_tool(executor, "write_code_asset", path="new.css", type="style", content="")
    assert "There is a new.css already" in refused["error"]
    for inverse in (deleted["inverse"], created["inverse"]):
        assert run_tool(open_file(folder), "restore", **inverse[0]["input"])["ok"]
    assert bytes_of(folder) == before


def test_an_undo_reaches_only_for_code_in_the_folder(folder: Path, tmp_path: Path) -> None:
    for name, place in (("notes.txt", folder), ("up.css", tmp_path)):
        (place / name).write_bytes(b"mine")
        path = "../up.css" if place is tmp_path else name
        swap = {"at": 0, "length": 4, "hash": content_digest(b"mine"), "before": "", "after": "", "text": "yours"}
        answer = run_tool(open_file(folder), "restore", patch={"edits": [{"path": path, "swaps": [swap]}]})
        assert (answer["ok"], answer["conflict"]) == (False, True)
        assert (place / name).read_bytes() == b"mine"


def test_an_undo_skips_an_edit_whose_result_was_changed_and_changes_nothing(folder: Path) -> None:
    executor = open_file(folder)
    inverse = run_tool(executor, "applyCss", css=".card { top: 1px }")["inverse"]
    (folder / "css" / "site.css").write_text(".card {\n  top: 9px;\n}\n")
    before = bytes_of(folder)
    answer = run_tool(open_file(folder), "restore", **inverse[0]["input"])
    assert (answer["ok"], answer["conflict"], "was not undone" in answer["error"]) == (False, True, True)
    assert bytes_of(folder) == before


def test_what_changes_nothing_has_no_inverse(folder: Path) -> None:
    executor = open_file(folder)
    for name, arguments in (
        ("read_document", {}),
        ("assignClass", {"nodeId": "n6", "classId": "card"}),
        ("applyCss", {"css": ".card { top: 0 }"}),
        ("deleteNode", {"nodeId": "n99"}),
        ("addPage", {"title": "x"}),
    ):
        answer = run_tool(executor, name, **arguments)
        assert ("inverse" in answer, answer["revision"]) == (False, executor.file.document.revision)


def test_a_link_to_an_existing_file_makes_it_editable(folder: Path) -> None:
    (folder / "more.css").write_text(".more { top: 0 }\n")
    executor = open_file(folder)
    head = next(e.uid for e in executor.file.document.tree.elements if e.tag == "head")
    answer = run_tool(executor, "insertHtml", parentId=head, html='<link rel="stylesheet" href="more.css">')
    assert answer["revision"] == executor.file.document.revision
    assert run_tool(executor, "applyCss", answer["revision"], css=".more { top: 1px }")["ok"]
    assert (folder / "more.css").read_text() == ".more { top: 1px }\n"


@pytest.mark.parametrize(
    "name", ["addPage", "site_delete_page", "duplicatePage", "setPageTemplate", "site_rename_node"]
)
def test_what_a_single_file_has_no_place_for_is_refused_in_a_sentence(folder: Path, name: str) -> None:
    answer = run_tool(open_file(folder), name, pageId="index", nodeId="n6", label="x", title="x")
    assert answer["ok"] is False
    assert answer["error"].endswith(".")
    assert "Unknown" not in answer["error"]
    assert bytes_of(folder)["index.html"] == PAGE.encode()


@pytest.mark.exhaustive
def test_edits_of_a_page_of_half_a_megabyte_take_as_much_longer_as_it_is_larger(tmp_path: Path) -> None:
    item = "  <section class='s'>\n    <h2>Title</h2>\n    <p>Some <b>bold</b> <i>words</i>.</p>\n  </section>\n"

    def seconds(times: int) -> float:
        path = tmp_path / f"{times}.html"
        path.write_text(f"<style>.s {{ top: 0 }}</style><main>\n{item * times}</main>\n")
        executor = HtmlFileExecutor(HtmlFile(path))
        main = executor.file.document.tree.find_first("main")
        assert main is not None
        started = time.process_time()
        assert run_tool(executor, "duplicateNode", nodeId=main.children[0].uid, count=50)["ok"]
        assert run_tool(executor, "applyCss", css=".s { left: 0 } .t { top: 0 }")["ok"]
        return time.process_time() - started

    short, long = min(seconds(550) for _ in range(3)), seconds(5_500)
    assert (tmp_path / "5500.html").stat().st_size > 500_000
    assert long < 10 * short * 3
