"""Edits of one file at the same time: whoever is told that an edit was made finds it in the file."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor
from fermata_client.document import disk_writes
from fermata_client.document.disk_files import NotAnHtmlFileError
from fermata_client.document.disk_writes import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, FileWrite, write_files
from tests.quick_suite_samples import sample_for_quick_suite

HEAD = '<head><link rel="stylesheet" href="css/site.css"><script src="app.js"></script></head>'
PAGE = HEAD + "\n<body>\n<p>a</p>\n</body>\n"
CSS = ".card {\n  top: 0;\n}\n"
APP = "let a = 1;\n"
ROUNDS = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "site"
    (home / "css").mkdir(parents=True)
    write_site(home)
    return home


def write_site(home: Path) -> None:
    (home / "index.html").write_text(PAGE)
    (home / "css" / "site.css").write_text(CSS)
    (home / "app.js").write_text(APP)


def open_file(folder: Path, out: Path | None = None) -> HtmlFileExecutor:
    return HtmlFileExecutor(HtmlFile(folder / "index.html", out))


def request(name: str, arguments: dict[str, Any], revision: str | None = None) -> dict[str, Any]:
    return {"toolName": name, "requestId": name + str(arguments), "input": arguments, "revision": revision}


EDITS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "index.html": lambda name: ("insertHtml", {"parentId": "n4", "html": f'<p id="{name}">x</p>'}),
    "css/site.css": lambda name: ("applyCss", {"css": f".{name} {{ top: 0 }}"}),
    "app.js": lambda name: ("write_code_asset", {"path": "app.js", "type": "script", "content": f"{APP}// {name}\n"}),
    "js/new.js": lambda name: ("write_code_asset", {"path": "js/new.js", "type": "script", "content": f"// {name}\n"}),
}
"""Edits by the file that they change."""


def edit_at_once(folder: Path, path: str, name: str, barrier: Any, answers: Any) -> None:
    executor = open_file(folder)
    tool, arguments = EDITS[path](name)
    planned = request(tool, arguments, executor.revision())
    barrier.wait()
    answers.put((name, executor(planned)))


@pytest.mark.parametrize("path", sample_for_quick_suite(EDITS, every=3))
def test_of_two_programs_that_edit_at_once_the_second_is_told_of_the_first(folder: Path, path: str) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(ROUNDS):
        write_site(folder)
        (folder / "js" / "new.js").unlink(missing_ok=True)
        barrier, answers = context.Barrier(2), context.Queue()
        programs = [
            context.Process(target=edit_at_once, args=(folder, path, name, barrier, answers)) for name in ("aa", "bb")
        ]
        for program in programs:
            program.start()
        answer_by_name = dict(answers.get() for _ in programs)
        for program in programs:
            program.join()
        made = [name for name, answer in answer_by_name.items() if answer["ok"]]
        text = (folder / path).read_text()
        assert [name for name in made if name not in text] == []
        assert len(made) == 1
        refused = answer_by_name[({"aa", "bb"} - set(made)).pop()]
        assert refused["conflict"]


def save_while_computing(monkeypatch: pytest.MonkeyPatch, save: Callable[[], object]) -> None:
    """Let a person save when an edit is worked out and not yet written."""

    def compute_inverse(before: object, after: object) -> list[dict[str, Any]]:
        save()
        return []

    monkeypatch.setattr("fermata_client.tools.executor.inverse_calls", compute_inverse)


@pytest.mark.parametrize("edited", EDITS)
@pytest.mark.parametrize("saved", ["index.html", "css/site.css", "app.js"])
def test_what_a_person_saves_meanwhile_is_kept_and_told_as_a_conflict(
    folder: Path, monkeypatch: pytest.MonkeyPatch, edited: str, saved: str
) -> None:
    theirs = (folder / saved).read_text() + "/* mine */\n"
    save_while_computing(monkeypatch, lambda: (folder / saved).write_text(theirs))
    before = {path: (folder / path).read_bytes() for path in ("index.html", "css/site.css", "app.js")}
    executor = open_file(folder)
    answer = executor(request(*EDITS[edited]("aa"), executor.revision()))
    assert (answer["ok"], answer["conflict"]) == (False, True)
    assert "+/* mine */" in answer["changes"]
    assert answer["revision"] == executor.revision() == open_file(folder).revision()
    after = {path: (folder / path).read_bytes() for path in before}
    assert after == before | {saved: theirs.encode()}
    assert not (folder / "js").exists()


def test_a_file_that_is_deleted_or_made_meanwhile_is_a_conflict_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_while_computing(monkeypatch, (folder / "css" / "site.css").unlink)
    answer = open_file(folder)(request(*EDITS["css/site.css"]("aa")))
    assert (answer["ok"], answer["conflict"]) == (False, True)
    assert not (folder / "css" / "site.css").exists()
    save_while_computing(monkeypatch, lambda: (folder / "css" / "site.css").write_text("theirs {}"))
    answer = open_file(folder)(
        request("write_code_asset", {"path": "css/site.css", "type": "style", "content": "a {}"})
    )
    assert not answer["ok"]
    assert (folder / "css" / "site.css").read_text() == "theirs {}"


def test_an_undo_finds_its_place_beside_what_is_saved_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inverse,) = open_file(folder)(request(*EDITS["index.html"]("aa")))["inverse"]
    saves = iter(
        [lambda: (folder / "index.html").write_text((folder / "index.html").read_text() + "<!-- theirs -->\n")]
    )
    save_while_computing(monkeypatch, lambda: next(saves, lambda: None)())
    assert open_file(folder)(request("restore", inverse["input"]))["ok"]
    assert (folder / "index.html").read_text() == PAGE + "<!-- theirs -->\n"


def test_two_programs_that_write_one_output_file_do_not_lose_each_others_edits(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "build" / "index.html"
    first, second = open_file(folder, out), open_file(folder, out)
    assert first(request(*EDITS["index.html"]("aa")))["ok"]
    refused = second(request(*EDITS["index.html"]("bb")))
    assert (refused["ok"], refused["conflict"]) == (False, True)
    body = second.file.document.content_root.uid
    assert second(request("insertHtml", {"parentId": body, "html": "<p id=bb>x</p>"}))["ok"]
    assert all(f"id={quote}{name}" in out.read_text() for name, quote in (("aa", '"'), ("bb", "")))


def test_an_output_file_that_someone_else_writes_meanwhile_is_kept(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy.html"
    file = HtmlFile(folder / "index.html", out)
    out.write_text("theirs")
    with pytest.raises(NotAnHtmlFileError, match="was kept"):
        file.write_copy()
    assert out.read_text() == "theirs"


# How a file is written


def test_when_the_second_of_two_files_cannot_be_replaced_the_first_has_its_old_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file = Path.replace

    def replace_or_fail(source: Path, target: Path) -> Path:
        if target.name == "index.html":
            raise OSError(5, "Input/output error", str(target))
        return replace_file(source, target)

    executor = open_file(folder)
    monkeypatch.setattr(Path, "replace", replace_or_fail)
    answer = executor(request("write_code_asset", {"path": "js/new.js", "type": "script", "content": "1"}))
    assert (answer["ok"], "Input/output error" in answer["error"]) == (False, True)
    assert not (folder / "js").exists()
    assert (folder / "index.html").read_text() == PAGE


def test_an_undo_of_a_new_file_takes_its_folders_along_and_no_others(folder: Path) -> None:
    (folder / "empty").mkdir()
    written = {"path": "js/deep/new.js", "type": "script", "content": "1"}
    (inverse,) = open_file(folder)(request("write_code_asset", written))["inverse"]
    assert (folder / "js" / "deep" / "new.js").exists()
    assert open_file(folder)(request("restore", inverse["input"]))["ok"]
    assert sorted(path.name for path in folder.iterdir()) == ["app.js", "css", "empty", "index.html"]


@pytest.mark.parametrize("step", ["mkdir", "lock", "stage"])
def test_a_folder_that_another_program_deletes_meanwhile_is_created_again(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deletions = iter([folder / "js"])

    def delete_first(function: Callable[..., Any]) -> Callable[..., Any]:
        def deleting(*arguments: Any, **options: Any) -> Any:
            if step != "mkdir" and (path := next(deletions, None)):
                path.rmdir()
            result = function(*arguments, **options)
            if step == "mkdir" and arguments[0].name == "js" and (path := next(deletions, None)):
                path.rmdir()
            return result

        return deleting

    patched = {
        "mkdir": (Path, "mkdir"),
        "lock": (disk_writes, "lock_folders"),
        "stage": (disk_writes, "_stage_content"),
    }[step]
    monkeypatch.setattr(*patched, delete_first(getattr(*patched)))
    answer = open_file(folder)(request("write_code_asset", {"path": "js/new.js", "type": "script", "content": "1"}))
    assert (answer["ok"], (folder / "js" / "new.js").read_text()) == (True, "1")


def write_and_undo(folder: Path, name: str, barrier: Any, answers: Any) -> None:
    barrier.wait()
    for _ in range(10):
        path = folder / "js" / f"{name}.js"
        write_files([FileWrite(path, b"1", None)], lambda: None, [folder])
        answers.put(path.exists())
        write_files([FileWrite(path, None, b"1")], lambda: None, [folder])
    answers.put(True)


def test_two_programs_create_and_delete_files_of_one_new_folder(folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    programs = [context.Process(target=write_and_undo, args=(folder, name, barrier, answers)) for name in ("aa", "bb")]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    assert [program.exitcode for program in programs] == [0, 0]
    assert all(answers.get() for _ in range(22))
    assert not (folder / "js").exists()


def test_a_linked_sheet_keeps_its_mode_and_the_link_it_is_reached_by(folder: Path) -> None:
    (folder / "css" / "theme.css").write_text(CSS)
    (folder / "css" / "theme.css").chmod(0o664)
    (folder / "css" / "site.css").unlink()
    (folder / "css" / "site.css").symlink_to("theme.css")
    assert open_file(folder)(request(*EDITS["css/site.css"]("aa")))["ok"]
    assert (folder / "css" / "site.css").is_symlink()
    assert ".aa" in (folder / "css" / "theme.css").read_text()
    assert stat.S_IMODE((folder / "css" / "theme.css").stat().st_mode) == 0o664


def test_a_read_only_sheet_is_not_changed(folder: Path) -> None:
    (folder / "css" / "site.css").chmod(0o444)
    answer = open_file(folder)(request(*EDITS["css/site.css"]("aa")))
    assert (answer["ok"], "read-only" in answer["error"]) == (False, True)
    assert (folder / "css" / "site.css").read_text() == CSS


def test_a_file_that_a_killed_program_left_is_deleted_and_a_fresh_one_is_not(folder: Path) -> None:
    old, fresh = (folder / f"{TEMPORARY_PREFIX}{name}{TEMPORARY_SUFFIX}" for name in ("old", "fresh"))
    old.touch()
    fresh.touch()
    os.utime(old, (0, 0))
    assert open_file(folder)(request(*EDITS["index.html"]("aa")))["ok"]
    assert [path.name for path in folder.glob(".*")] == [fresh.name]
