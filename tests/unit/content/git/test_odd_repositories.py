"""Links and files where content belongs elsewhere stop a pull, so that no document is taken for deleted."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from dulwich.object_store import MemoryObjectStore, commit_tree_changes
from dulwich.objects import Blob, Tree

from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.fields import FieldDefinition, FieldType
from fermata.content.files.canonical_json import UnreadableFile
from fermata.content.files.file_layout import ROOT
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import ContentProject
from fermata.content.git.branch_files import read_branch_files
from fermata.content.git.git_branch import CommitAuthor, FetchedBranch, build_commit, fetch_branch
from fermata.content.git.git_errors import GitRejected, GitUnavailable
from fermata.content.git.merge_projects import merge_projects
from tests.unit.content.files.project_samples import make_tree
from tests.unit.content.git.test_hostile_repositories import make_commit

FILE, LINK, SUBMODULE = 0o100644, 0o120000, 0o160000
NOTE = ".contentrain/content/product/note/"
NEW_ENTRY = DocumentKey("faq", "new-one")


def make_branch(entries: Mapping[bytes, int], left_out: str = "") -> FetchedBranch:
    """Return a branch with the sample project without what begins with a path, and with entries of some modes."""
    store: Any = MemoryObjectStore()
    kept = {path: text for path, text in make_tree().items() if not left_out or not path.startswith(left_out)}
    files = [(path.encode(), FILE, Blob.from_string(text.encode())) for path, text in kept.items()]
    files += [(path, mode, Blob.from_string(b"elsewhere")) for path, mode in entries.items()]
    for _, _, blob in files:
        store.add_object(blob)
    changes = [(path, mode, blob.id) for path, mode, blob in files]
    store.add_object(commit := make_commit(store[commit_tree_changes(store, Tree(), changes)]))
    return FetchedBranch(b"refs/heads/main", commit.id, commit.id, store)


@pytest.mark.parametrize(
    ("path", "mode", "left_out", "problem"),
    [
        (b".contentrain/config.json", LINK, "", r"config\.json cannot be read: it is a link"),
        (b".contentrain/content", LINK, ".contentrain/content", r"content cannot be read: it is a link"),
        (b".contentrain/content/product", SUBMODULE, ".contentrain/content/product", "product .* submodule"),
        (b".contentrain/content", FILE, ".contentrain/content", "a folder has to be there"),
        (b".contentrain", FILE, ROOT, "a folder has to be there"),
        (b".contentrain", SUBMODULE, ROOT, r"^\.contentrain cannot be read: it is a link or a submodule"),
        (NOTE.encode() + b"caf\xe9/en.md", FILE, "", r"caf\\xe9/en\.md .* not in UTF-8"),
    ],
)
def test_what_is_no_file_where_content_belongs_is_named(path: bytes, mode: int, left_out: str, problem: str) -> None:
    with pytest.raises(UnreadableFile, match=problem):
        read_branch_files(make_branch({path: mode}, left_out), "", [ROOT])


def test_what_is_outside_of_content_may_be_anything() -> None:
    others = {b"vendor": SUBMODULE, b"link": LINK, b".contentrain/client": LINK, b"caf\xe9.md": FILE}
    assert read_branch_files(make_branch(others), "", [ROOT]) == make_tree()


def test_the_folder_of_a_project_is_no_file() -> None:
    with pytest.raises(UnreadableFile, match=r"^apps cannot be read: a folder has to be there\."):
        read_branch_files(make_branch({b"apps": FILE}), "apps/web", [ROOT])
    author, branch = CommitAuthor("Ada", "ada@example.com"), make_branch({b"apps": FILE})
    with pytest.raises(GitRejected, match="something else where a folder"):
        build_commit(branch, {"apps/web/.contentrain/config.json": "{}\n"}, author, "m", 1)


@pytest.mark.parametrize("prefer", [None, "ours", "theirs"])
def test_a_model_that_one_side_deletes_keeps_what_the_other_has_added(prefer: Any) -> None:
    base = parse_project_files(make_tree())
    theirs = parse_project_files({path: text for path, text in make_tree().items() if "/faq" not in path})
    added = DocumentContent(locales={"en": {"question": "New?", "answer": "Yes."}})
    ours = replace(base, documents={**base.documents, NEW_ENTRY: added})
    project, conflicts = merge_projects(base, theirs, ours, prefer)
    if prefer is None:
        assert [(key.id, one[0].path) for key, one in conflicts.items()] == [("faq", "document")]
        return
    entries = {key for key in project.documents if key.model == "faq"}
    assert (conflicts, "faq" in project.models) == ({}, prefer == "ours")
    assert entries == ({NEW_ENTRY} if prefer == "ours" else set())


def test_fields_that_both_sides_have_added_to_a_model_come_together() -> None:
    base = parse_project_files(make_tree())
    sides = [add_field(base, name, "string") for name in ("theirs", "ours")]
    project, conflicts = merge_projects(base, *sides)
    assert (conflicts, project.models["faq"].fields.keys() - base.models["faq"].fields.keys()) == (
        {},
        {"theirs", "ours"},
    )
    [found] = merge_projects(
        base, add_field(base, "size", "string"), add_field(base, "size", "number")
    ).conflicts.values()
    assert [one.path for one in found] == ["data.fields.size"]


def add_field(project: ContentProject, name: str, kind: str) -> ContentProject:
    model = project.models["faq"]
    fields = {**model.fields, name: FieldDefinition(type=FieldType(kind))}
    return replace(project, models={**project.models, "faq": model.model_copy(update={"fields": fields})})


def test_a_file_that_may_be_run_still_may_when_it_changes() -> None:
    branch, path = make_branch({b"run.json": 0o100755}), "run.json"
    built = build_commit(branch, {path: "{}\n", "new.json": "{}\n"}, CommitAuthor("Ada", "ada@example.com"), "m", 1)
    [top] = [one for one in built.objects if isinstance(one, Tree)]
    assert [oct(top[name][0]) for name in (b"run.json", b"new.json")] == ["0o100755", "0o100644"]


def test_a_repository_of_another_hash_is_named() -> None:
    server: Any = SimpleNamespace(fetch_pack=lambda *_args, **_named: SimpleNamespace(object_format="sha256"))
    with pytest.raises(GitUnavailable, match="SHA-256"):
        fetch_branch(server, "main")
