"""Define the bodies of requests on the agents and secrets of a tenant."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from fermata.wire.bodies.fields import StrictBody, UploadRef

MAX_FOLDER_UPLOADS = 50


def _to_whole_number(value: Any) -> Any:
    """Return 1 for 1.0, which is a whole number in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Line = Annotated[int, Field(ge=0, le=10**9), BeforeValidator(_to_whole_number)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class AgentFile(StrictBody):
    """A file that defines agents, with its content as JSON. docs/agents.md describes the format.

    `lines` has the line of each member by its path, such as `agents[0].id`, for the messages about mistakes.
    """

    name: _Name
    content: Any = None
    lines: Annotated[dict[str, _Line], Field(max_length=100_000, default_factory=dict)]


class FolderFile(StrictBody):
    """A file of a folder that an agent reads. Its content is Base64."""

    path: _Name
    content: str
    modified_ms: Annotated[int, Field(ge=0, le=10**14), BeforeValidator(_to_whole_number)] = 0


class UploadedFolder(StrictBody):
    """Files of a folder that are uploaded before a push, as JSON. Several uploads may hold parts of one folder."""

    files: list[FolderFile]


class NewAgents(StrictBody):
    """All agents of the workspace. Those that are not among them are removed.

    `folderUploads` names uploads of the kind `agentFiles` with further files of folders, whose content is
    `{"files": […]}` with files as in `folders`. `version` is the version of the list that the client has seen; without
    it any. With `dryRun` nothing is changed.
    """

    files: Annotated[list[AgentFile], Field(max_length=200)]
    folders: Annotated[dict[_Name, list[FolderFile]], Field(max_length=50, default_factory=dict)]
    folder_uploads: Annotated[
        dict[_Name, Annotated[list[UploadRef], Field(max_length=MAX_FOLDER_UPLOADS)]],
        Field(max_length=50, default_factory=dict),
    ]
    version: _Line | None = None
    dry_run: bool = False


class NewSecret(StrictBody):
    """The value of a secret. It cannot be read again."""

    value: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
