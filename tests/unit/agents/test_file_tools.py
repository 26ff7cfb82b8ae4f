"""The file tools read a bundle, with the names, limits and outputs that agents of other systems know."""

from collections.abc import Mapping
from typing import Any

import pytest

from fermata.agents.files import file_tools
from fermata.agents.files.bundle_store import PACK_BYTES, PushedFile, list_bundle_problems, open_bundle, store_bundle
from fermata.agents.files.file_tools import OpenedBundle
from fermata.agents.files.glob_pattern import GlobPattern
from fermata.agents.files.resolve_path import PathOutsideBase, resolve_path
from fermata.agents.tool_sources.file_tools import FILE_TOOL_NAMES, build_file_tools
from fermata.aws.resources import Resources
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import InvalidRequest
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, apply_result_policy
from fermata.tools.calls.runner import run_tool
from fermata.tools.tool import ToolContext
from fermata.tools.toolset import Toolset
from tests.growth.measure_growth import MAX_GROWTH, measure_growth
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

BASE = "/test/knowledge-base"
TEXTS = {
    "readme.md": "line one\nGovernance is key\nline three",
    "guides/guide.md": "first\nGovernance principles\nthird\nfourth",
    "data.txt": "no match here\njust data",
}
CONTEXT = ToolContext(tenant="t", user="u", capabilities=frozenset({"ai.chat"}), scope="site", turn="x")


def open_files(resources: Resources, files: Mapping[str, str | bytes]) -> OpenedBundle:
    pushed = [
        PushedFile(path, content.encode() if isinstance(content, str) else content, 1_000, 500)
        for path, content in files.items()
    ]
    return open_bundle(resources, store_bundle(resources, "t", pushed))


def call(resources: Resources, opened: OpenedBundle, name: str, arguments: Any) -> ToolOutput:
    toolset = Toolset("files", build_file_tools(lambda: opened))
    admitted = admit_call(toolset, ToolCallBlock(tool_call_id="c", tool_name=name, input=arguments), CONTEXT)
    if not isinstance(admitted, AdmittedCall):
        return admitted
    return apply_result_policy(admitted.tool, run_tool(admitted, CONTEXT, clock=resources.clock))


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("principles/principle-01.md", f"{BASE}/principles/principle-01.md"),  # resolvePath-02
        ("/", BASE),  # resolvePath-03
        ("", BASE),  # resolvePath-04
        (None, BASE),  # resolvePath-05
        ("/file.md", f"{BASE}/file.md"),  # resolvePath-06
        ("///file.md", f"{BASE}/file.md"),  # resolvePath-07
        ("./file.md", f"{BASE}/file.md"),  # resolvePath-08
        ("sub/../file.md", f"{BASE}/file.md"),
        ("sub/", f"{BASE}/sub"),
        (".", BASE),
        ("..md/x", f"{BASE}/..md/x"),
        ("../knowledge-base/x", f"{BASE}/x"),
    ],
)
def test_a_path_is_resolved_below_the_base(path: str | None, resolved: str) -> None:
    assert resolve_path(BASE, path) == resolved
    assert resolve_path(BASE + "/", path) == resolved


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",  # resolvePath-10
        "sub/../../secret.txt",  # resolvePath-11
        "../knowledge-base-evil/x",  # resolvePath-13
        "..",
        "/../secret.txt",
        "../../../etc/passwd",
    ],
)
def test_a_path_that_leads_out_of_the_base_is_refused(path: str) -> None:
    with pytest.raises(PathOutsideBase, match="resolves outside the base directory"):
        resolve_path(BASE, path)


def test_a_path_below_the_root_of_the_file_system_is_resolved() -> None:
    assert resolve_path("/", "/etc/x") == "/etc/x"


def test_the_tools_have_the_names_that_are_reserved_for_them() -> None:
    assert tuple(tool.name for tool in build_file_tools(lambda: None)) == FILE_TOOL_NAMES  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("hello.md", "Hello, world!"),  # readFile-01
        ("sub/nested.txt", "Nested content"),  # readFile-02
        ("/sub/../hello.md", "Hello, world!"),
        ("marked.txt", "grüße"),
        ("utf16.txt", "grüße"),
        ("latin.txt", "gr\ufffd\ufffde"),
    ],
)
def test_a_file_is_read_as_text(resources: Resources, path: str, expected: str) -> None:
    files: dict[str, str | bytes] = {"hello.md": "Hello, world!", "sub/nested.txt": "Nested content"}
    files |= {"marked.txt": b"\xef\xbb\xbf" + "grüße".encode(), "utf16.txt": "grüße".encode("utf-16")}
    files |= {"latin.txt": "grüße".encode("latin-1")}
    assert call(resources, open_files(resources, files), "read-file", {"path": path}) == ToolOutput.success(expected)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing.md", "There is no file"),  # readFile-03
        ("../../../etc/passwd", "resolves outside the base directory"),  # readFile-04
        ("guides", "is a directory"),
        ("", "is a directory"),
        ("photo.png", "is a binary file of 12 bytes"),
        ("readme.md/x", "There is no file"),
    ],
)
def test_what_cannot_be_read_is_said_to_the_model(resources: Resources, path: str, error: str) -> None:
    opened = open_files(resources, {**TEXTS, "photo.png": b"\x89PNG\r\n\x1a\n\0\0\0\r"})
    output = call(resources, opened, "read-file", {"path": path})
    assert not output.ok
    assert error in (output.error or "")


def test_of_a_large_file_the_first_512_kb_are_read_with_a_note(resources: Resources) -> None:
    content = "ä" * 300_000  # 600,000 bytes, and the cut is not within a character
    opened = open_files(resources, {"a.txt": content, "b.txt": "x" + content, "exact.txt": "y" * 524_288})
    whole = call(resources, opened, "read-file", {"path": "a.txt"}).data
    text, _, note = whole.rpartition("\n\n")
    assert len(text.encode()) == 524_288
    assert note == "[This is the first 512KB of 586 KB, use search-files to find what follows.]"
    assert call(resources, opened, "read-file", {"path": "b.txt"}).data.startswith("x" + "ä" * 262_143 + "\n\n[")
    assert call(resources, opened, "read-file", {"path": "exact.txt"}).data == "y" * 524_288


def test_a_directory_is_listed_in_order_and_not_what_is_below(resources: Resources) -> None:
    opened = open_files(resources, {**TEXTS, ".hidden": "12", "guides/deep/x.md": "1"})
    assert call(resources, opened, "list-files", {}).data == [
        {"name": ".hidden", "path": ".hidden", "type": "file", "size": 2},
        {"name": "data.txt", "path": "data.txt", "type": "file", "size": 23},
        {"name": "guides", "path": "guides", "type": "directory", "size": 0},
        {"name": "readme.md", "path": "readme.md", "type": "file", "size": 37},
    ]
    assert [it["path"] for it in call(resources, opened, "list-files", {"path": "/guides"}).data] == [
        "guides/deep",
        "guides/guide.md",
    ]
    assert not call(resources, opened, "list-files", {"path": "readme.md"}).ok
    assert not call(resources, opened, "list-files", {"path": ".."}).ok


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        (None, "**/*.md", ["guides/deep/x.md", "guides/guide.md", "readme.md"]),
        (None, "*", [".hidden", "data.txt", "guides", "readme.md"]),
        ("guides", "**/*", ["guides/deep", "guides/deep/x.md", "guides/guide.md"]),
        ("guides", "../*.{md,txt}", ["data.txt", "readme.md"]),
        ("guides", "../../*", []),
        (None, "/guides/*.md", ["guides/guide.md"]),
        (None, "[a-d]*.t?t", ["data.txt"]),
    ],
)
def test_a_glob_finds_what_is_below_and_nothing_outside(
    resources: Resources, path: str | None, glob: str, expected: list[str]
) -> None:
    opened = open_files(resources, {**TEXTS, ".hidden": "12", "guides/deep/x.md": "1"})
    arguments = {"glob": glob} | ({"path": path} if path else {})
    assert [it["path"] for it in call(resources, opened, "list-files", arguments).data] == expected


@pytest.mark.parametrize("query", ["governance", "GOVERNANCE"])  # searchFiles-01, searchFiles-02
def test_a_search_ignores_case_and_shows_lines_with_their_neighbours(resources: Resources, query: str) -> None:
    found = call(resources, open_files(resources, TEXTS), "search-files", {"query": query}).data
    assert [it["path"] for it in found] == ["guides/guide.md", "readme.md"]
    context = {"before": "line one", "after": "line three"}
    assert found[1] == {  # searchFiles-03
        "path": "readme.md",
        "matches": [{"lineNumber": 2, "line": "Governance is key", "context": context}],
    }


def test_a_search_looks_only_into_the_files_of_its_glob(resources: Resources) -> None:  # searchFiles-04
    opened = open_files(resources, TEXTS)
    found = call(resources, opened, "search-files", {"query": "governance", "glob": "guides/**/*.md"}).data
    assert [it["path"] for it in found] == ["guides/guide.md"]


def test_a_search_without_a_hit_returns_an_empty_list(resources: Resources) -> None:  # searchFiles-05
    opened = open_files(resources, TEXTS)
    assert call(resources, opened, "search-files", {"query": "nonexistent-term-xyz"}) == ToolOutput.success([])


def test_a_search_returns_200_lines_over_all_files_in_the_order_of_their_paths(resources: Resources) -> None:
    files = {f"f{number}.txt": "hit\n" * 50 for number in range(10)}  # searchFiles-08
    found = call(resources, open_files(resources, files), "search-files", {"query": "hit"}).data
    assert [it["path"] for it in found] == ["f0.txt", "f1.txt", "f2.txt", "f3.txt"]
    assert sum(len(it["matches"]) for it in found) == 200


def test_a_search_skips_large_and_binary_files_and_reads_hidden_ones(resources: Resources) -> None:
    files: dict[str, str | bytes] = {
        ".env": "hit",
        "large.txt": "hit" + "x" * 1_048_576,
        "limit.txt": "hit" + "x" * 1_048_573,
        "binary": b"hit\0",
    }
    found = call(resources, open_files(resources, files), "search-files", {"query": "hit"}).data
    assert [it["path"] for it in found] == [".env", "limit.txt"]
    assert len(found[1]["matches"][0]["line"]) == file_tools.MAX_MATCHED_LINE_CHARS + 1


def test_what_is_known_of_a_file_and_a_directory_is_told(resources: Resources) -> None:
    opened = open_files(resources, TEXTS)
    times = {"modified": "1970-01-01T00:00:01.000Z", "created": "1970-01-01T00:00:00.500Z"}
    assert call(resources, opened, "stat-file", {"path": "/guides/guide.md"}).data == {
        "name": "guide.md", "path": "/guides/guide.md", "size": 40, "type": "file", **times
    }  # fmt: skip
    assert call(resources, opened, "stat-file", {"path": "guides"}).data == {
        "name": "guides", "path": "guides", "size": 0, "type": "directory", **times
    }  # fmt: skip


def test_the_same_files_are_the_same_bundle(resources: Resources) -> None:
    files = [PushedFile(path, text.encode()) for path, text in TEXTS.items()]
    keys = {store_bundle(resources, "t", files), store_bundle(resources, "t", files[::-1])}
    assert len(keys) == 1
    assert len(resources.blobs.list_keys("agents/t")) == 2
    assert store_bundle(resources, "t", []) not in keys


def test_files_of_every_size_are_read_back_from_their_packs(resources: Resources) -> None:
    sizes = [0, 1, PACK_BYTES - 1, PACK_BYTES, 5, PACK_BYTES + 1, 7, 0]
    files = {f"{number}.txt": bytes([65 + number]) * size for number, size in enumerate(sizes)}
    opened = open_files(resources, files)
    assert {file.path: opened.reader.read_file(file) for file in opened.bundle.files} == files
    assert {file.path: content for file, content in opened.reader.read_files(opened.bundle.files)} == files


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a/./b", "", "a\0b", "x" * 501])
def test_a_path_that_is_not_plain_makes_no_bundle(resources: Resources, path: str) -> None:
    with pytest.raises(InvalidRequest, match="not a plain relative path"):
        store_bundle(resources, "t", [PushedFile(path, b"")])


def test_all_problems_of_a_bundle_are_named_at_once() -> None:
    files = [PushedFile(path, b"") for path in ("a", "a", "a/b", "../c")]
    assert len(list_bundle_problems(files)) == 3


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**", "a/b/c"), ("**/c", "c"), ("a/**/c", "a/c"), ("a/**/**/c", "a/b/d/c"), ("{a,{b,c}}/x", "c/x"),
        ("a*b*c", "aXbYc"), ("[!x]", "y"), ("[]]", "]"), ("a[", "a["), ("./a", "a"), ("{a}", "{a}"), ("*", ".a"),
    ],
)  # fmt: skip
def test_a_glob_matches(glob: str, path: str) -> None:
    assert GlobPattern(glob).matches(path)


@pytest.mark.parametrize(
    ("glob", "path"), [("*", "a/b"), ("a", "A"), ("?", ""), ("[!x]", "x"), ("a*", "b"), ("a/**/c", "a")]
)
def test_a_glob_does_not_match(glob: str, path: str) -> None:
    assert not GlobPattern(glob).matches(path)


@pytest.mark.parametrize("glob", ["*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/b", "{a,b}{a,b}{a,b}{a,b}{a,b}*"])
def test_a_glob_takes_twice_the_time_for_a_path_of_twice_the_length(glob: str) -> None:
    def prepare(size: int) -> Any:
        path = "a/" * size + "a" * size
        return lambda: GlobPattern(glob).matches(path)

    assert measure_growth(prepare, 1_000, 4_000) <= MAX_GROWTH


def test_a_glob_with_too_many_alternatives_is_refused(resources: Resources) -> None:
    output = call(resources, open_files(resources, TEXTS), "list-files", {"glob": "{a,b}" * 20})
    assert "more than 64 patterns" in (output.error or "")


@pytest.mark.parametrize("name", ["list-files", "search-files"])
def test_twice_as_many_files_take_twice_the_time(resources: Resources, name: str) -> None:
    arguments = {"list-files": {"glob": "**/*.md"}, "search-files": {"query": "nowhere", "glob": "**/*.md"}}[name]

    def prepare(size: int) -> Any:
        files = {f"d{number % 50}/e{number % 7}/{number}.md": "some words\n" * 5 for number in range(size)}
        key = store_bundle(resources, "t", [PushedFile(path, text.encode()) for path, text in files.items()])

        def work() -> ToolOutput:
            resources.cache.invalidate(("file bundle", key))
            return call(resources, open_bundle(resources, key), name, arguments)

        return work

    assert measure_growth(prepare, 1_250, 10_000, max_seconds=5) <= MAX_GROWTH
