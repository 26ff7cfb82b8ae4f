"""A space is pushed to a Git server and pulled from it, while somebody else commits, and while the server breaks."""

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import delete_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.documents.read_document import read_document, read_newest_version
from fermata.content.files.canonical_json import UnreadableFile
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.write_project import write_project
from fermata.content.git.git_errors import GitAccessRefused, GitMoved, GitRejected, GitUnavailable
from fermata.content.git.git_http_client import GuardedGitClient
from fermata.content.git.git_remote import GitRemote, delete_git_remote, put_git_remote, read_git_remote
from fermata.content.git.sync_repository import SyncConflict, SyncSummary, pull_repository, push_repository
from fermata.content.model_store import create_space
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.drivers.transport import http_connection
from tests.certificates import write_certificate
from tests.git_server import GitServer, run_git, serve_git
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.unit.content.conftest import ADA
from tests.unit.content.files.project_samples import CONFIG, make_tree, text_of

SPACE = SpaceKey("bakery", "studio")
OTHER_SPACE = SpaceKey("bakery", "copy")
FAQ_EN = ".contentrain/content/marketing/faq/en.json"
FRESH = DocumentKey("faq", "a1b2c3d4e5f6")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serve_git(tmp_path) as server:
        yield server


@pytest.fixture
def project(resources: Resources, server: GitServer) -> SpaceKey:
    """A space with the sample project, which knows the repository and was not pushed yet."""
    create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), ADA)
    write_project(resources, SPACE, parse_project_files(make_tree()), ContentAuthor("ada", "import"))
    put_git_remote(resources, SPACE, GitRemote(url=server.url), None)
    return SPACE


def push(resources: Resources, **options: Any) -> SyncSummary:
    return push_repository(resources, SPACE, ADA, "Update content", **options)


def answer_question(resources: Resources, answer: str) -> None:
    update_document(resources, SPACE, FRESH, ADA, lambda content: content.with_fields("en", {"answer": answer}))


def read_answer(resources: Resources, space: SpaceKey = SPACE) -> str:
    content = read_document(resources, space, FRESH).content
    assert content is not None
    return str(content.get_locale("en")["answer"])


def change_answer(tree: dict[str, str], **fields: str) -> dict[str, str | None]:
    entries = json.loads(tree[FAQ_EN])
    entries[FRESH.id] |= fields
    return {FAQ_EN: text_of(entries)}


def test_a_space_moves_through_a_repository_into_another_one(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    pushed = push(resources)
    assert (server.read_files(), pushed.pushed) == (make_tree(), len(make_tree()))
    assert push(resources) == SyncSummary(pushed.commit), "nothing has changed, so there is nothing to commit"
    create_space(resources, OTHER_SPACE, ContentSpace(), ADA)
    put_git_remote(resources, OTHER_SPACE, GitRemote(url=server.url), None)
    assert pull_repository(resources, OTHER_SPACE, ADA).commit == pushed.commit
    assert push_repository(resources, OTHER_SPACE, ADA, "Again").pushed == 0
    assert server.list_commits() == ["Update content"]


def test_what_others_have_committed_and_what_has_changed_here_come_together(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    server.commit(change_answer(make_tree(), question="Is it really fresh?") | {"README.md": "Ours\n"})
    answer_question(resources, "Of course.")
    summary = push(resources)
    entry = json.loads(server.read_files()[FAQ_EN])[FRESH.id]
    assert (entry["question"], entry["answer"]) == ("Is it really fresh?", "Of course.")
    assert (summary.pulled, summary.pushed) == (1, 1)
    assert server.read_files()["README.md"] == "Ours\n"
    assert server.list_commits() == ["Update content", "By hand", "Update content"]


def test_a_field_that_both_have_changed_is_a_conflict_until_somebody_decides(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    commit = server.commit(change_answer(make_tree(), answer="Sometimes."))
    answer_question(resources, "Of course.")
    for sync in (push, lambda resources: pull_repository(resources, SPACE, ADA)):
        with pytest.raises(SyncConflict) as refused:
            sync(resources)
        [conflict] = refused.value.details["conflicts"]
        assert conflict["fields"] == [
            {"field": "en.answer", "base": "Yes.", "theirs": "Sometimes.", "ours": "Of course."}
        ]
    assert (read_answer(resources), server.list_commits()[0]) == ("Of course.", "By hand")
    assert pull_repository(resources, SPACE, ADA, "theirs").commit == commit
    assert read_answer(resources) == "Sometimes."
    assert push(resources).pushed == 0


def test_somebody_who_commits_in_the_middle_of_a_push_is_merged(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    answer_question(resources, "Of course.")

    def commit_once() -> None:
        server.before_push = lambda: None
        server.commit(change_answer(make_tree(), question="Really?"))

    server.before_push = commit_once
    push(resources)
    entry = json.loads(server.read_files()[FAQ_EN])[FRESH.id]
    assert (entry["question"], entry["answer"]) == ("Really?", "Of course.")
    assert server.list_commits() == ["Update content", "By hand", "Update content"]


def test_a_push_whose_answer_is_lost_is_not_made_twice(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    server.loses_answers = True
    with pytest.raises(GitUnavailable):
        push(resources)
    server.loses_answers = False
    assert push(resources).pushed == 0
    assert server.list_commits() == ["Update content"]


@pytest.mark.parametrize("commits_on_top", [False, True])
def test_what_is_changed_again_after_a_push_whose_answer_was_lost_is_no_conflict(
    resources: Resources, server: GitServer, project: SpaceKey, *, commits_on_top: bool
) -> None:
    push(resources)
    answer_question(resources, "Of course.")
    server.loses_answers = True
    with pytest.raises(GitUnavailable):
        push(resources)
    server.loses_answers = False
    if commits_on_top:
        server.commit({"README.md": "Ours\n"})
    answer_question(resources, "Always.")
    assert push(resources).pushed == 1
    entry = json.loads(server.read_files()[FAQ_EN])[FRESH.id]
    assert (entry["answer"], read_answer(resources)) == ("Always.", "Always.")
    server.commit(change_answer(server.read_files(), answer="Sometimes."))
    assert pull_repository(resources, SPACE, ADA).pulled == 1
    assert read_answer(resources) == "Sometimes."


def test_a_push_that_never_arrived_leaves_what_both_had_in_common(
    resources: Resources, server: GitServer, project: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(resources)
    answer_question(resources, "Of course.")
    with monkeypatch.context() as patch:
        patch.setattr(GuardedGitClient, "send_pack", _fail_to_send)
        with pytest.raises(GitUnavailable):
            push(resources)
    server.commit(change_answer(make_tree(), answer="Sometimes."))
    with pytest.raises(SyncConflict):
        push(resources)
    assert pull_repository(resources, SPACE, ADA, "ours").pulled == 0
    assert push(resources).pushed == 1


def _fail_to_send(*_given: Any, **_named: Any) -> None:
    raise GitUnavailable("Nothing arrived.")


def test_a_server_that_is_down_changes_nothing(resources: Resources, server: GitServer, project: SpaceKey) -> None:
    put_git_remote(resources, SPACE, GitRemote(url="http://127.0.0.1:9/site.git"), None)
    with pytest.raises(GitUnavailable, match="did not answer"):
        push(resources)
    with pytest.raises(GitUnavailable):
        pull_repository(resources, SPACE, ADA)
    assert read_git_remote(resources, SPACE).commit == ""


def test_a_commit_that_a_rule_of_the_server_refuses_is_an_error_that_says_so(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    server.install_hook('read old new ref; test "$ref" != refs/heads/main')
    with pytest.raises(GitRejected, match="pre-receive hook declined"):
        push(resources)
    put_git_remote(resources, SPACE, GitRemote(url=server.url, branch="content/site"), None)
    push(resources)
    assert server.list_branches() == ["content/site"]


def test_a_repository_that_has_moved_is_named(resources: Resources, server: GitServer, project: SpaceKey) -> None:
    server.location = "https://git.example.com/new"
    with pytest.raises(GitMoved, match=r"has moved to https://git\.example\.com/new/site\.git\."):
        push(resources)


def test_a_repository_that_has_moved_on_its_server_is_named_with_its_server(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    server.location = "/team"
    with pytest.raises(GitMoved) as moved:
        push(resources)
    assert moved.value.details["location"] == server.url.replace("/site.git", "/team/site.git")


def test_a_default_branch_with_another_name_is_named(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    run_git("branch", "-m", "main", "trunk", folder=server.repository)
    with pytest.raises(NotFound, match=r"no branch main\. Its default branch is trunk: connect the site to that one"):
        pull_repository(resources, SPACE, ADA)
    put_git_remote(resources, SPACE, GitRemote(url=server.url, branch="trunk"), None)
    assert (pull_repository(resources, SPACE, ADA).pulled, push(resources).pushed) == (0, 0)


def test_a_password_that_the_server_repeats_is_veiled(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    server.password = "hunter-2-hunter"
    header = base64.b64encode(b"ada:hunter-2-hunter").decode()
    put_git_remote(resources, SPACE, GitRemote(url=server.url, username="ada"), server.password)
    server.location = f"https://git.example.com/{header}/hunter-2-hunter"
    with pytest.raises(GitMoved, match=r"has moved to https://git\.example\.com/") as moved:
        push(resources)
    said = f"{moved.value.message} {moved.value.details}"
    assert "hunter-2" not in said
    assert header[6:20] not in said


def test_a_password_is_sealed_and_bound_to_its_address(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    server.password = "secret-word"
    with pytest.raises(GitAccessRefused, match="Enter credentials"):
        push(resources)
    remote = GitRemote(url=server.url, username="ada")
    put_git_remote(resources, SPACE, remote, "secret-word")
    push(resources)
    put_git_remote(resources, SPACE, remote.model_copy(update={"branch": "other"}), None)
    push(resources)
    assert server.list_branches() == ["main", "other"]
    put_git_remote(resources, SPACE, GitRemote(url=server.url, username="bob"), None)
    with pytest.raises(GitAccessRefused):
        push(resources)
    rows = resources.tables.query_items(resources.settings.content_table, SPACE.pk, min_sk="g#", max_sk="g#~")
    assert "secret-word" not in repr(rows)


def test_a_document_that_one_side_deletes_is_deleted(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    note = ".contentrain/content/product/note/first-bread/"
    server.commit({f"{note}en.md": None, f"{note}tr.md": None, ".contentrain/meta/note/first-bread/en.json": None})
    delete_document(resources, SPACE, FRESH, ADA)
    push(resources)
    gone = read_newest_version(resources, SPACE, DocumentKey("note", "first-bread"))
    assert gone is not None
    assert gone.is_deleted
    files = server.read_files()
    assert list(json.loads(files[FAQ_EN])) == ["how-long"]
    assert not any("first-bread" in path for path in files)


def test_files_of_other_writers_keep_their_form_and_what_is_unknown_stays(
    resources: Resources, server: GitServer
) -> None:
    tree: dict[str, str | None] = {f"apps/web/{path}": text for path, text in make_tree().items()}
    words = "apps/web/.contentrain/content/product/words/en.json"
    tree[words] = '{"auth.failed":"Failed","auth.expired":"Expired"}'
    tree["apps/web/.contentrain/client/index.mjs"] = "export {}\n"
    server.commit(tree)
    create_space(resources, SPACE, ContentSpace(), ADA)
    put_git_remote(resources, SPACE, GitRemote(url=server.url, root="apps/web"), None)
    pull_repository(resources, SPACE, ADA)
    answer_question(resources, "Of course.")
    assert push(resources).pushed == 1
    files = server.read_files()
    assert files[words] == tree[words]
    assert files["apps/web/.contentrain/client/index.mjs"] == "export {}\n"


def test_a_file_that_cannot_be_read_stops_a_pull_before_anything_is_changed(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    server.commit(change_answer(make_tree(), answer="No.") | {".contentrain/models/hero.json": "{"})
    with pytest.raises(UnreadableFile, match=r"models/hero\.json"):
        pull_repository(resources, SPACE, ADA)
    assert read_answer(resources) == "Yes."


def test_a_pull_takes_no_preset_that_is_none_but_leaves_one_that_was_there(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    push(resources)
    config = text_of(CONFIG | {"mediaVariants": {"banner": {"wide": {"width": 0}}}})
    server.commit(change_answer(make_tree(), answer="No.") | {".contentrain/config.json": config})
    with pytest.raises(InvalidRequest, match=r"mediaVariants\.banner\.wide"):
        pull_repository(resources, SPACE, ADA)
    assert read_answer(resources) == "Yes."
    tree = make_tree() | {".contentrain/config.json": config}
    write_project(resources, SPACE, parse_project_files(tree), ContentAuthor("ada", "import"))
    pull_repository(resources, SPACE, ADA)
    assert read_answer(resources) == "No."


def test_a_repository_without_a_project_is_not_pulled(
    resources: Resources, server: GitServer, project: SpaceKey
) -> None:
    with pytest.raises(NotFound, match="Push to it first"):
        pull_repository(resources, SPACE, ADA)
    server.commit({"README.md": "Empty\n"})
    with pytest.raises(NotFound, match="Push to it first"):
        pull_repository(resources, SPACE, ADA)
    push(resources)
    assert server.read_files() == {**make_tree(), "README.md": "Empty\n"}
    delete_git_remote(resources, SPACE)
    with pytest.raises(NotFound, match="not connected"):
        push(resources)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "http://git.example.com/site.git"}, "https://"),
        ({"url": "https://10.0.0.1/site.git"}, "not public"),
        ({"url": "file:///etc"}, "not a URL"),
        ({"url": "http://ada:word@127.0.0.1:9/site.git"}, "must not hold a user name"),
        ({"branch": "a..b"}, "'branch'"),
        ({"branch": "-x"}, "'branch'"),
        ({"root": "../x"}, "'root'"),
        ({"username": "a:b"}, "'username'"),
    ],
)
def test_an_address_that_may_not_be_reached_is_refused(
    resources: Resources, project: SpaceKey, fields: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        put_git_remote(resources, SPACE, GitRemote(**{"url": "http://127.0.0.1:9/x.git", **fields}), None)


def test_a_repository_is_reached_by_tls_if_its_certificate_is_trusted_and_its_own(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), ADA)
    write_project(resources, SPACE, parse_project_files(make_tree()), ContentAuthor("ada", "import"))
    certificates = {
        "own": write_certificate(make_folder(tmp_path, "own"), "127.0.0.1"),
        "of another": write_certificate(make_folder(tmp_path, "of another"), "127.0.0.2"),
        "expired": write_certificate(make_folder(tmp_path, "expired"), "127.0.0.1", is_expired=True),
        "unknown": write_certificate(make_folder(tmp_path, "unknown"), "127.0.0.1"),
    }
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("own", "of another", "expired"):
        trusting.load_verify_locations(certificates[name])
    monkeypatch.setattr(http_connection, "get_tls_context", lambda: trusting)
    for name, certificate in certificates.items():
        with serve_git(certificate.parent, certificate) as server:
            put_git_remote(resources, SPACE, GitRemote(url=server.url), None)
            if name == "own":
                assert push(resources).commit
                assert FAQ_EN in server.read_files()
                continue
            with pytest.raises(GitUnavailable, match="did not answer"):
                push(resources)
            assert server.requests == 0, name


def make_folder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def test_a_repository_that_is_connected_again_by_a_late_write_stays_disconnected(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_space(resources, SPACE, ContentSpace(locales=("en",)), ADA)
    remote = GitRemote(url="http://127.0.0.1:9/site.git")
    recorder = WriteRecorder(resources, monkeypatch)
    put_git_remote(resources, SPACE, remote, "secret")
    delete_git_remote(resources, SPACE)
    recorder.land_again()
    with pytest.raises(NotFound):
        read_git_remote(resources, SPACE)
    repeat_single_writes(resources, monkeypatch)
    assert put_git_remote(resources, SPACE, remote, "secret") == read_git_remote(resources, SPACE)
    delete_git_remote(resources, SPACE)
    with pytest.raises(NotFound):
        read_git_remote(resources, SPACE)
