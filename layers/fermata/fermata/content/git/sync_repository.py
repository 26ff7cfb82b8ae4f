"""Pull a space from its repository, and push it there; merge first if somebody else has committed meanwhile.

Both begin with what space and repository had in common when they were synchronised last, which is kept. So either may
be repeated at any moment: what has arrived already is no change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.content.change_sets.merge_contents import Conflicts, Preference, list_conflict_views, name_documents
from fermata.content.content_space import SpaceKey
from fermata.content.documents.commit_errors import ContentMoved
from fermata.content.documents.document import ContentAuthor
from fermata.content.documents.document_commit import make_way
from fermata.content.files.canonical_json import parse_json_file
from fermata.content.files.file_layout import MODELS_FOLDER, ROOT, find_documents_folder
from fermata.content.files.model_files import parse_model_file
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import ContentProject, FileTree, format_project_files
from fermata.content.files.read_project import make_project, read_whole_space
from fermata.content.files.write_project import write_project
from fermata.content.git.branch_files import read_branch_files
from fermata.content.git.git_branch import CommitAuthor, FetchedBranch, build_commit, fetch_branch, push_commit
from fermata.content.git.git_errors import GitHeadMoved
from fermata.content.git.git_http_client import GitCredentials, GuardedGitClient
from fermata.content.git.git_remote import (
    GitRemote,
    SyncPoint,
    announce_push,
    open_git_password,
    read_git_remote,
    record_sync,
)
from fermata.content.git.merge_projects import MergedProject, merge_projects
from fermata.content.media.project_presets import check_new_presets
from fermata.domain.errors import Conflict, NotFound, ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.url_guard import UrlGuard

MAX_SYNC_ATTEMPTS = 4
MAX_SYNC_SECONDS = 20.0
"""Until the last answer of the server. A request to the API has 28 seconds, in which the space is written, too."""
DEFAULT_COMMIT_AUTHOR = CommitAuthor("Fermata", "fermata@localhost")


class SyncConflict(Conflict):
    """Space and repository have changed the same fields. `details` lists them; nothing was changed."""

    code = "mergeConflict"

    def __init__(self, conflicts: Conflicts) -> None:
        names = name_documents(conflicts)
        super().__init__(
            f"The repository and the site have changed the same fields of {names}. Say whose values count."
        )
        self.details = {"conflicts": list_conflict_views(conflicts)}


@value_dataclass(frozen=True)
class SyncSummary:
    """What has happened.

    Attributes:
        commit: The newest commit of the branch.
        pulled: How many documents and models of the space have changed.
        pushed: How many files of the repository have changed.
        ignored: Files of the repository that nothing was made of.
    """

    commit: str
    pulled: int = 0
    pushed: int = 0
    ignored: tuple[str, ...] = ()

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        return {
            "commit": self.commit,
            "pulled": self.pulled,
            "pushed": self.pushed,
            "ignored": list(self.ignored[:100]),
        }


@value_dataclass(frozen=True)
class RepositoryState:
    """The project of a repository, and its files as they are there."""

    branch: FetchedBranch
    files: FileTree
    project: ContentProject | None

    @property
    def commit(self) -> str:
        return bytes(self.branch.base).decode()


def pull_repository(
    resources: Resources, space: SpaceKey, author: ContentAuthor, prefer: Preference | None = None
) -> SyncSummary:
    """Merge the newest commit of the repository into the space.

    Args:
        resources: Of the process.
        space: The space.
        author: Who does it.
        prefer: Whose values count in a conflict: `theirs` are those of the repository.

    Raises:
        NotFound: The space has no repository, or there is no project in it.
        SyncConflict: Both have changed the same fields; nothing was changed.
        UnreadableFile: A file of the repository cannot be read.
        ContentRefused: A document breaks the rules of its model.
        ServiceUnavailable: Others have changed the same in each of `MAX_SYNC_ATTEMPTS` attempts.
    """
    ends = resources.clock.time() + MAX_SYNC_SECONDS
    for _ in range(MAX_SYNC_ATTEMPTS):
        remote = read_git_remote(resources, space)
        with open_git_client(resources, space, remote, ends) as client:
            state = fetch_repository_state(client, remote)
        if state.project is None or not state.branch.head:
            raise NotFound(_describe_missing_project(remote.branch, state.branch))
        try:
            summary = _merge_into_space(resources, space, remote, state, author, prefer)
        except ContentMoved as moved:
            make_way(resources, space, moved)
            continue
        record_sync(resources, space, remote, state.commit, state.files)
        return summary
    raise _make_busy_error()


def _describe_missing_project(name: str, branch: FetchedBranch) -> str:
    """Say that there is nothing to pull. A branch that is gone may be the default one under another name."""
    if branch.head or branch.default in ("", name):
        return f"The repository has no branch {name} with a {ROOT}config.json. Push to it first."
    return (
        f"The repository has no branch {name}. Its default branch is {branch.default[:100]}: connect the site to that "
        f"one, or push, which begins {name} from there."
    )


def _make_busy_error() -> ServiceUnavailable:
    return ServiceUnavailable("Others are changing this site or its repository. Try again.", retry_after=2)


def push_repository(
    resources: Resources,
    space: SpaceKey,
    author: ContentAuthor,
    message: str,
    prefer: Preference | None = None,
    committer: CommitAuthor = DEFAULT_COMMIT_AUTHOR,
) -> SyncSummary:
    """Commit what the space says to the repository. What others have committed is merged into the space first.

    Args:
        resources: Of the process.
        space: The space.
        author: Who does it.
        message: What the commit says.
        prefer: Whose values count in a conflict: `theirs` are those of the repository.
        committer: Whom the commit names.

    Raises:
        NotFound: The space has no repository.
        SyncConflict: Both have changed the same fields; nothing was changed.
        GitRejected: The server does not take the commit.
        ServiceUnavailable: Others have committed in each of `MAX_SYNC_ATTEMPTS` attempts.
    """
    pulled, ends = 0, resources.clock.time() + MAX_SYNC_SECONDS
    for _ in range(MAX_SYNC_ATTEMPTS):
        remote = read_git_remote(resources, space)
        with open_git_client(resources, space, remote, ends) as client:
            state = fetch_repository_state(client, remote)
            try:
                if state.project is not None and state.commit != remote.commit:
                    pulled += _merge_into_space(resources, space, remote, state, author, prefer).pulled
            except ContentMoved as moved:
                make_way(resources, space, moved)
                continue
            ours = format_project_files(make_project(read_whole_space(resources, space)))
            changes = list_outgoing_files(state, ours, remote.root)
            pushed = SyncPoint(state.commit, ours)
            try:
                if changes or not state.branch.head:
                    seconds = int(resources.clock.time())
                    built = build_commit(state.branch, changes, committer, message, seconds)
                    pushed = SyncPoint(bytes(built.sha).decode(), ours)
                    remote = _announce(resources, space, remote, state, pushed)
                    push_commit(client, state.branch, built)
            except (GitHeadMoved, ContentMoved):
                continue
        record_sync(resources, space, remote, pushed.commit, ours)
        ignored = state.project.ignored if state.project else ()
        return SyncSummary(pushed.commit, pulled, len(changes), ignored)
    raise _make_busy_error()


def _announce(
    resources: Resources, space: SpaceKey, remote: GitRemote, state: RepositoryState, pushed: SyncPoint
) -> GitRemote:
    """Note a commit before it is pushed, so that its files count if nobody hears whether it has arrived.

    Raises:
        ContentMoved: Somebody has synchronised the space meanwhile; it has to be merged again.
        NotFound: The repository was disconnected.
    """
    has_merged = state.project is not None and state.commit != remote.commit
    merged = SyncPoint(state.commit, state.files) if has_merged else None
    try:
        return announce_push(resources, space, remote, pushed, merged)
    except Conflict as refused:
        raise ContentMoved from refused


@contextmanager
def open_git_client(
    resources: Resources, space: SpaceKey, remote: GitRemote, ends: float
) -> Iterator[GuardedGitClient]:
    """Open a connection to the repository of a space, with its password.

    Args:
        resources: Of the process.
        space: The space.
        remote: The repository.
        ends: When the last request has to have its answer, in seconds since 1970.
    """
    password = open_git_password(resources, space, remote)
    credentials = GitCredentials(remote.username, password) if remote.username or password else None
    guard = UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)
    seconds = max(1.0, ends - resources.clock.time())
    connection = HttpConnection(stall_seconds=seconds, total_seconds=seconds, guard=guard)
    try:
        with connection.call_scope():
            yield GuardedGitClient(remote.url, connection, credentials)
    finally:
        connection.close()


def fetch_repository_state(client: GuardedGitClient, remote: GitRemote) -> RepositoryState:
    """Fetch the newest commit of a repository, and read the project in it."""
    branch = fetch_branch(client, remote.branch)
    files = read_branch_files(branch, remote.root, [ROOT])
    models = [path for path in files if path.startswith(MODELS_FOLDER) and path.endswith(".json")]
    folders = {
        find_documents_folder(parse_model_file(files[path], path)).path
        for path in models
        if "content_path" in parse_json_file(files[path], path)
    }
    files |= read_branch_files(branch, remote.root, sorted(folders))
    has_project = f"{ROOT}config.json" in files
    return RepositoryState(branch, files, parse_project_files(files) if has_project else None)


def _merge_into_space(
    resources: Resources,
    space: SpaceKey,
    remote: GitRemote,
    state: RepositoryState,
    author: ContentAuthor,
    prefer: Preference | None,
) -> SyncSummary:
    """Write the merged project to the space.

    Raises:
        ContentMoved: Somebody has changed the space or synchronised it meanwhile; it has to be merged again.
        InvalidRequest: The repository defines presets of media that are none.
    """
    whole = read_whole_space(resources, space)
    ours = make_project(whole)
    merged = merge_with_repository(resources, remote, state, ours, prefer)
    if read_git_remote(resources, space).version != remote.version:
        raise ContentMoved  # another sync has ended, which was at another commit than this one
    if merged.conflicts:
        raise SyncConflict(merged.conflicts)
    check_new_presets(ours.config, merged.project.config)
    importer = author._replace(source="import")
    written = write_project(resources, space, merged.project, importer, seen=whole)
    ignored = state.project.ignored if state.project else ()
    return SyncSummary(state.commit, written.written + written.deleted + written.models, ignored=ignored)


def merge_with_repository(
    resources: Resources,
    remote: GitRemote,
    state: RepositoryState,
    ours: ContentProject,
    prefer: Preference | None = None,
) -> MergedProject:
    """Merge what a space says with what its repository says, in memory.

    Args:
        resources: Of the process.
        remote: The repository, with what both had in common.
        state: What was fetched; there is a project in it.
        ours: What the space says.
        prefer: Whose values count in a conflict.
    """
    assert state.project is not None
    has_arrived = remote.sent_commit in state.branch.newest_commits
    common = remote.sent_base if has_arrived else remote.base
    base = parse_project_files(resources.blobs.get_json(common)) if common else None
    if base is None and not ours.documents:
        base = ours  # a space that says nothing yet has changed nothing either
    return merge_projects(base, state.project, ours, prefer)


def list_outgoing_files(state: RepositoryState, ours: FileTree, root: str) -> dict[str, str | None]:
    """Return the files that differ in what they say, by their paths from the root of the repository.

    A file that says the same in another form stays as it is. A file that nothing was made of is left alone.
    """
    theirs = format_project_files(state.project) if state.project else {}
    prefix = f"{root}/" if root else ""
    changes: dict[str, str | None] = {prefix + path: text for path, text in ours.items() if theirs.get(path) != text}
    gone = [path for path in theirs if path not in ours and path in state.files]
    return changes | {prefix + path: None for path in gone}
