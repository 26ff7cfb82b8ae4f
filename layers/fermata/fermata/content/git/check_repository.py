"""Compare a space with its repository, and change neither."""

from typing import Any

from fermata.aws.resources import Resources
from fermata.content.change_sets.merge_contents import Conflicts, list_conflict_views
from fermata.content.content_space import SpaceKey
from fermata.content.files.project_files import ContentProject, format_project_files
from fermata.content.files.read_project import make_project, read_whole_space
from fermata.content.git.git_remote import GitRemote, read_git_remote
from fermata.content.git.sync_repository import (
    MAX_SYNC_SECONDS,
    RepositoryState,
    fetch_repository_state,
    list_outgoing_files,
    merge_with_repository,
    open_git_client,
)
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class RepositoryStatus:
    """What a pull and a push would do.

    Attributes:
        commit: The newest commit of the branch; empty if there is none.
        incoming: How many documents and models of the space a pull would change.
        outgoing: How many files of the repository a push would change.
        conflicts: The fields that both have changed.
    """

    commit: str
    incoming: int
    outgoing: int
    conflicts: Conflicts

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        is_synchronised = not (self.incoming or self.outgoing or self.conflicts)
        counts = {"incoming": self.incoming, "outgoing": self.outgoing, "isSynchronised": is_synchronised}
        return {"commit": self.commit, **counts, "conflicts": list_conflict_views(self.conflicts)}


def check_repository(resources: Resources, space: SpaceKey) -> RepositoryStatus:
    """Return what a pull and a push would do. With conflicts, documents without one are counted.

    Args:
        resources: Of the process.
        space: The space.

    Raises:
        NotFound: The space has no repository.
        GitUnavailable: The server does not answer as one.
        UnreadableFile: A file of the repository cannot be read.
    """
    remote = read_git_remote(resources, space)
    with open_git_client(resources, space, remote, resources.clock.time() + MAX_SYNC_SECONDS) as client:
        state = fetch_repository_state(client, remote)
    ours = make_project(read_whole_space(resources, space))
    return _compare(resources, remote, state, ours)


def _compare(resources: Resources, remote: GitRemote, state: RepositoryState, ours: ContentProject) -> RepositoryStatus:
    commit = state.commit if state.branch.head else ""
    if state.project is None:
        return RepositoryStatus(commit, 0, len(list_outgoing_files(state, format_project_files(ours), remote.root)), {})
    merged = merge_with_repository(resources, remote, state, ours)
    outgoing = list_outgoing_files(state, format_project_files(merged.project), remote.root)
    return RepositoryStatus(commit, _count_changes(ours, merged.project), len(outgoing), merged.conflicts)


def _count_changes(before: ContentProject, after: ContentProject) -> int:
    documents = before.documents.keys() | after.documents.keys()
    models = before.models.keys() | after.models.keys()
    return sum(before.documents.get(key) != after.documents.get(key) for key in documents) + sum(
        before.models.get(name) != after.models.get(name) for name in models
    )
