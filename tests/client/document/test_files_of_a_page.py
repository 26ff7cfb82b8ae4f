"""Only scripts and style sheets belong to a page, by whatever name and way another file is asked for."""

from html import escape
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor
from fermata_client.document.disk_files import NotAnHtmlFileError
from fermata_client.document.undo_hunk import content_digest
from fermata_client.html.linked_files import is_code_path, local_path_from_address

SECRET = "SECRET=1\n"
FORBIDDEN = [
    ".env",
    ".git/config",
    ".GIT/hooks/post-commit.js",
    ".vscode/settings.css",
    "css/.hidden.css",
    "css/../.env",
    "Makefile",
    "package.json",
    "deploy.sh",
    "notes.css.txt",
    "index.php",
    "logo.svg",
    "css",
    "site.css/../.env",
]
NUMBERS = count(1)


def run_tool(folder: Path, name: str, **arguments: Any) -> dict[str, Any]:
    executor = HtmlFileExecutor(HtmlFile(folder / "index.html"))
    return executor({"toolName": name, "requestId": f"r{next(NUMBERS)}", "input": arguments})


def make_site(folder: Path, path: str, address: str, element: str) -> None:
    target = folder / path
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(SECRET)
    (folder / "index.html").write_text(element.format(address) + "\n<p>a</p>\n")


SPELLINGS = {
    "as it is": lambda path: path,
    "percent-encoded": lambda path: quote(path).replace(".", "%2e").replace("/", "%2F"),
    "with character references": lambda path: path.replace(".", "&#46;").replace("/", "&#x2f;"),
    "from the folder itself": lambda path: "./" + path,
    "with a query": lambda path: path + "?v=1.css",
    "with a fragment": lambda path: path + "#.js",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("path", FORBIDDEN)
@pytest.mark.parametrize(
    "element", ['<link rel="stylesheet" href="{}">', '<script src="{}"></script>'], ids=["css", "js"]
)
def test_a_page_cannot_name_another_file_as_its_own(tmp_path: Path, path: str, spelling: str, element: str) -> None:
    (tmp_path / "css").mkdir()
    make_site(tmp_path, path, SPELLINGS[spelling](path), element)
    assert HtmlFile(tmp_path / "index.html").document.files == {}
    for answer in (
        run_tool(tmp_path, "read_document"),
        run_tool(tmp_path, "list_code_assets"),
        run_tool(tmp_path, "read_code_asset", path=path),
        run_tool(tmp_path, "applyCss", css=".a { top: 0 }"),
        run_tool(tmp_path, "write_code_asset", path=path, type="style", content="a {}"),
        run_tool(tmp_path, "write_code_asset", path=path, type="script", content="1"),
    ):
        assert "SECRET" not in str(answer)
    if path not in ("css",):
        assert (tmp_path / path).read_text() == SECRET


@pytest.mark.parametrize("path", [*FORBIDDEN, ".env\x00.css", "js\\..\\.env", "C:\\x.css", "C:x.css", "x.css::$DATA"])
@pytest.mark.parametrize("asset_type", ["style", "script"])
def test_a_model_cannot_make_another_file(tmp_path: Path, path: str, asset_type: str) -> None:
    (tmp_path / "index.html").write_text("<p>a</p>\n")
    answer = run_tool(tmp_path, "write_code_asset", path=path, type=asset_type, content="a {}")
    assert not answer["ok"]
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


@pytest.mark.parametrize("target", [".env", ".git/site.css", "Makefile", "page.txt"])
def test_a_symbolic_link_gives_no_other_name_to_a_file(tmp_path: Path, target: str) -> None:
    make_site(tmp_path, target, "site.css", '<link rel="stylesheet" href="{}">')
    (tmp_path / "site.css").symlink_to(target)
    assert HtmlFile(tmp_path / "index.html").document.files == {}
    assert not run_tool(tmp_path, "write_code_asset", path="site.css", type="style", content="a {}")["ok"]
    assert (tmp_path / target).read_text() == SECRET


def test_a_linked_folder_gives_no_way_into_a_hidden_one(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "assets").symlink_to(".git")
    (tmp_path / "index.html").write_text("<p>a</p>\n")
    answer = run_tool(tmp_path, "write_code_asset", path="assets/x.js", type="script", content="1")
    assert (answer["ok"], list((tmp_path / ".git").iterdir())) == (False, [])
    assert (tmp_path / "index.html").read_text() == "<p>a</p>\n"


@pytest.mark.parametrize("path", [".env", ".git/config", "Makefile", "../up.css", "css/.x.css"])
def test_an_undo_neither_changes_nor_makes_nor_deletes_another_file(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<p>a</p>\n")
    swap = {"at": 0, "length": 0, "hash": content_digest(b""), "before": "", "after": "", "text": "theirs"}
    made = run_tool(folder, "restore", patch={"edits": [{"path": path, "swaps": [swap], "removed": True}]})
    assert (made["ok"], (folder / path).exists()) == (False, False)
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text(SECRET)
    swap |= {"length": len(SECRET), "hash": content_digest(SECRET.encode())}
    for kind in ("created", "removed", "changed"):
        run_tool(folder, "restore", patch={"edits": [{"path": path, "swaps": [swap], kind: True}]})
        assert (folder / path).read_text() == SECRET


@pytest.mark.parametrize("path", ["js/menu.js", "CSS/Site.CSS", "a b.mjs", "v1.2/site.min.css", "é.css"])
@pytest.mark.parametrize("spelling", ["as it is", "percent-encoded", "with character references", "with a query"])
def test_a_script_or_sheet_of_the_folder_is_found_by_every_spelling(tmp_path: Path, path: str, spelling: str) -> None:
    element = '<link rel="stylesheet" href="{}">' if path.lower().endswith("css") else '<script src="{}"></script>'
    make_site(tmp_path, path, SPELLINGS[spelling](escape(path)), element)
    assert set(HtmlFile(tmp_path / "index.html").document.files) == {path}


@pytest.mark.parametrize("element", ['<link rel="stylesheet" href="a.js">', '<script src="a.css"></script>'])
def test_a_sheet_is_no_script_and_a_script_no_sheet(tmp_path: Path, element: str) -> None:
    for name in ("a.js", "a.css"):
        (tmp_path / name).write_text("")
    (tmp_path / "index.html").write_text(element)
    assert HtmlFile(tmp_path / "index.html").document.files == {}


@pytest.mark.parametrize(
    "address",
    ["a%00.css", "a\u200c.css", ".g\u200cit/x.css", "a%0a.css", "a%5cb.css", "%2e%2e/a.css", "%2Fa.css", "file:a.css"],
)
def test_a_name_that_file_systems_read_differently_is_no_path(address: str) -> None:
    assert local_path_from_address(address) is None


@pytest.mark.parametrize(
    "path",
    [
        "gulpfile.js",
        "vite.config.mjs",
        "PostCSS.Config.js",
        "karma.conf.js",
        "gatsby-node.js",
        "node_modules/a/index.js",
    ],
)
def test_a_script_that_build_tools_run_is_not_written(tmp_path: Path, path: str) -> None:
    make_site(tmp_path, "a.js", path, '<script src="{}"></script>')
    answer = run_tool(tmp_path, "write_code_asset", path=path, type="script", content="evil()")
    assert "build tools run" in answer["error"]
    assert not (tmp_path / path).exists()
    make_site(tmp_path, path, path, '<script src="{}"></script>')
    answer = run_tool(tmp_path, "write_code_asset", path=path, type="script", content="evil()")
    assert "build tools run" in answer["error"]
    assert (tmp_path / path).read_text() == SECRET


@pytest.mark.parametrize(
    "path", ["config.js", "js/menu.js", "sw.js", "app.min.js", "profile.js", "console.js", "aux-nav.js"]
)
def test_scripts_of_pages_are_written(tmp_path: Path, path: str) -> None:
    make_site(tmp_path, "a.css", "a.css", '<link rel=stylesheet href="{}">')
    assert run_tool(tmp_path, "write_code_asset", path=path, type="script", content="a()")["ok"]


@pytest.mark.parametrize("path", ["con.js", "NUL.css", "aux/site.css", "js/com1.js", "lpt1.min.js"])
def test_a_device_of_windows_is_no_file_of_a_page(tmp_path: Path, path: str) -> None:
    make_site(tmp_path, "a.css", "a.css", '<link rel=stylesheet href="{}">')
    kind = "style" if path.endswith(".css") else "script"
    assert not run_tool(tmp_path, "write_code_asset", path=path, type=kind, content="/* a */")["ok"]
    assert not (tmp_path / path).exists()


def test_an_ending_counts_in_every_case_and_a_dot_hides_at_every_level() -> None:
    assert is_code_path("A/B.Css")
    assert not any(is_code_path(path) for path in ("a/.b/c.css", ".c.css", "css", "acss", "a.css/b", "a.css.bak"))


def test_a_link_that_leads_to_itself_is_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    make_site(tmp_path, "css/site.css", "loop.js", '<script src="{}"></script>')
    (tmp_path / "loop.js").symlink_to("loop.js")
    (tmp_path / "loop.html").symlink_to("loop.html")
    assert run_tool(tmp_path, "list_code_assets")["data"]["assets"] == []
    answer = run_tool(tmp_path, "write_code_asset", path="loop.js", type="script", content="1")
    assert (answer["ok"], (tmp_path / "loop.js").is_symlink()) == (False, True)
    with pytest.raises(NotAnHtmlFileError, match="There is no file"):
        HtmlFile(tmp_path / "loop.html")
