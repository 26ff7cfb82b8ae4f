"""Operations by which a space is connected to a Git repository, and is written and read as files."""

from fermata.wire.bodies.content_requests import GitPull, GitPush, NewGitRemote, ProjectImport
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_CONTENT, CAN_READ_CONTENT, OK_RESPONSES
from fermata.wire.operations.content import NO_SUCH_FORMS
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_GIT_PATH = f"{API_PREFIX}/content-git/{{site}}/{{environment}}"
_FILES_PATH = f"{API_PREFIX}/content-files/{{site}}/{{environment}}"
_BAD_SPACE = {
    400: "The request is not as described, or a name has another form than names have.",
    404: "There is no such site or environment.",
}
_OF_SERVER = _BAD_SPACE | {
    400: "The request is not as described, or a file or a document of the repository breaks a rule.",
    404: "There is no such site or environment, it has no repository, or the repository has no project.",
    409: "`conflicts` has the fields that both have changed; or the server refuses the password or the commit, or has "
    "moved. `code` says which.",
    413: "The space or the repository is too large.",
    502: "The server did not answer as a Git server does.",
    402: NO_SUCH_FORMS,
    503: "Others are committing to the branch, or change what is to be written. Try again.",
}
_SYNC = (SuccessResponse("What has changed on both sides.", "GitSyncResponse"),)

SHOW_REPOSITORY = Operation(
    name="showGitRepository", function="credentials", method="GET", path=_GIT_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Show the Git repository of a space",
    responses=(SuccessResponse("The repository without its password.", "GitRepositoryResponse"),),
    errors=_BAD_SPACE,
)  # fmt: skip
CONNECT_REPOSITORY = Operation(
    name="connectGitRepository", function="credentials", method="PUT", path=_GIT_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Say which Git repository belongs to a space",
    description="Over HTTPS. The password is sealed and never shown. Without one, that of the same address and user "
    "stays.",
    body=NewGitRemote,
    responses=(SuccessResponse("The repository.", "GitRepositoryResponse"),),
    errors=_BAD_SPACE | {409: "Somebody else has changed it at the same moment."},
)  # fmt: skip
DISCONNECT_REPOSITORY = Operation(
    name="disconnectGitRepository", function="credentials", method="DELETE", path=_GIT_PATH,
    capabilities=CAN_MANAGE_CONTENT,
    summary="Forget the Git repository of a space, with its password",
    responses=OK_RESPONSES,
    errors=_BAD_SPACE | {409: "Somebody else has changed it at the same moment."},
)  # fmt: skip
CHECK_REPOSITORY = Operation(
    name="checkGitRepository", function="credentials", method="GET", path=f"{_GIT_PATH}/status",
    capabilities=CAN_MANAGE_CONTENT,
    summary="Show what a pull and a push would do",
    responses=(SuccessResponse("How many changes wait on both sides, with the conflicts.", "GitStatusResponse"),),
    errors=_OF_SERVER,
)  # fmt: skip
PULL_REPOSITORY = Operation(
    name="pullGitRepository", function="credentials", method="POST", path=f"{_GIT_PATH}/pull",
    capabilities=CAN_MANAGE_CONTENT,
    summary="Merge the newest commit of the repository into the space",
    description="With a conflict nothing is changed, unless `prefer` says whose values count: `theirs` are those of "
    "the repository. It may be repeated.",
    body=GitPull,
    requires_body=False,
    responses=_SYNC,
    errors=_OF_SERVER,
)  # fmt: skip
PUSH_REPOSITORY = Operation(
    name="pushGitRepository", function="credentials", method="POST", path=f"{_GIT_PATH}/push",
    capabilities=CAN_MANAGE_CONTENT,
    summary="Commit what the space says to the repository",
    description="What others have committed is merged into the space first, as by a pull. It may be repeated.",
    body=GitPush,
    requires_body=False,
    responses=_SYNC,
    errors=_OF_SERVER,
)  # fmt: skip
EXPORT_FILES = Operation(
    name="exportProjectFiles", function="credentials", method="GET", path=_FILES_PATH, capabilities=CAN_READ_CONTENT,
    summary="Export a space as files of the layout .contentrain/",
    description="In parts by path. `nextCursor` asks for the next one; `digest` is that of all files, so that parts of "
    "one export have the same. A file that is larger than a part comes in several ones: append its texts.",
    parameters=(RequestParameter("cursor", "`nextCursor` of the part before.", {"type": "string", "maxLength": 1000}),),
    responses=(SuccessResponse("A part of the files.", "ProjectFilesResponse"),),
    errors=_BAD_SPACE | {413: "The space has too many documents."},
)  # fmt: skip
IMPORT_FILES = Operation(
    name="importProjectFiles", function="credentials", method="POST", path=_FILES_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Make a space what files of the layout .contentrain/ say",
    description="What they do not have is deleted, and can be restored. Everything is validated before anything is "
    "written. Larger projects are uploaded first, as a JSON object of texts by path and an upload of the kind "
    "`snapshot`. It may be repeated.",
    body=ProjectImport,
    responses=(SuccessResponse("What has changed.", "WrittenProjectResponse"),),
    errors=_BAD_SPACE
    | {
        400: "The body is not as described, a file cannot be read, or `problems` says which rules are broken.",
        402: NO_SUCH_FORMS,
        404: "There is no such site, environment or upload.",
        409: "A model changes what its documents do not allow, a unique value is taken, or the upload is another one.",
        410: "The upload has expired.",
        413: "The project is too large.",
        503: "Others keep changing the documents. Try again.",
    },
)  # fmt: skip
CONTENT_GIT_HANDLERS = (
    (SHOW_REPOSITORY, "git_requests:show_repository"),
    (CONNECT_REPOSITORY, "git_requests:connect_repository"),
    (DISCONNECT_REPOSITORY, "git_requests:disconnect_repository"),
    (CHECK_REPOSITORY, "git_requests:show_repository_status"),
    (PULL_REPOSITORY, "git_requests:pull_into_space"),
    (PUSH_REPOSITORY, "git_requests:push_from_space"),
    (EXPORT_FILES, "file_requests:export_files"),
    (IMPORT_FILES, "file_requests:import_files"),
)
"""Operations and their handlers in `content_api/`, as `module:function`."""
