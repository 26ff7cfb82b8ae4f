"""Define the response bodies of operations on content."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel

_Status = Literal["draft", "in_review", "published", "rejected", "archived"]


class SpaceView(ResponseModel):
    """An environment of a site. The first locale is the default.

    Lists say what the caller may do there: `rights` has none where only others work, or where the caller sees a
    part through the studio's agent only; `member` is the row of the list of members that narrows them.
    """

    site: str
    environment: str
    title: str
    locales: list[str]
    domain: str
    created_at: InstantField
    rights: list[Literal["read", "write", "review", "manage", "keys", "plan"]] | None = None
    member: "SpaceMemberView | None" = None


class SpaceResponse(ResponseModel):
    space: SpaceView


class SpaceListResponse(ResponseModel):
    """The spaces of the workspace, by site and environment."""

    spaces: list[SpaceView]


class ContentModelView(ResponseModel):
    """A model. `documents` counts its documents, and of a section the places on pages.

    `domain` is the part of the site that its documents belong to, and the folder of their files. `formPath` is where
    visitors find its form and send it, if it has one.
    """

    id: str
    kind: str
    domain: str
    title: str
    description: str
    i18n: bool
    built_in: bool
    fields: dict[str, Any]
    form: dict[str, Any] | None = None
    form_path: str | None = None
    version: CountField
    documents: CountField


class ContentModelResponse(ResponseModel):
    model: ContentModelView


class ContentModelListResponse(ResponseModel):
    """The models by their ids."""

    models: list[ContentModelView]


class DocumentHeadView(ResponseModel):
    """A document as a list shows it."""

    model: str
    id: str
    version: CountField
    slug: str
    title: str
    status: _Status
    category: str
    locales: list[str]
    created_at: InstantField
    updated_at: InstantField
    published_at: str


class DocumentListResponse(ResponseModel):
    """Documents in the order of their creation. `total` counts all of the model, with and without filter."""

    documents: list[DocumentHeadView]
    total: CountField
    next_cursor: str | None = None


class VersionView(ResponseModel):
    """A version without what it says. `source` is who has written it: agent, human or import."""

    model: str
    id: str
    version: CountField
    action: Literal["create", "update", "delete", "restore", "merge"]
    at: InstantField
    created_at: InstantField
    user: str
    source: Literal["agent", "human", "import"]
    turn: str
    call: str
    change_set: str
    restored_from: CountField
    deleted: bool


class DocumentView(VersionView):
    """A version with what it says. One that marks a deletion says nothing.

    `meta` has by locale what is known of the content besides it, such as its `status`
    where that is not the document's.
    """

    slug: str | None = None
    title: str | None = None
    status: _Status | None = None
    published_at: str | None = None
    locales: dict[str, dict[str, Any]] | None = None
    parts: dict[str, int] | None = None
    meta: dict[str, dict[str, Any]] | None = None


class DocumentResponse(ResponseModel):
    """A document at its newest version, or at the one that was asked for. `warnings` keep nothing from being stored."""

    document: DocumentView
    warnings: list[dict[str, Any]] | None = None


class AssetResultView(ResponseModel):
    """What became of a file: the status that a request about it alone would have had. 503: send it again."""

    upload_ref: str
    status: int
    document: DocumentView | None = None
    code: str | None = None
    error: str | None = None


class AssetResultsResponse(ResponseModel):
    results: list[AssetResultView]


class AssetChangeView(ResponseModel):
    """What became of an asset: the status that a request about it alone would have had. 503: send it again."""

    id: str
    status: int
    code: str | None = None
    error: str | None = None


class AssetChangesResponse(ResponseModel):
    results: list[AssetChangeView]


class VersionListResponse(ResponseModel):
    """The versions, the newest first. `nextBefore` asks for older ones."""

    versions: list[VersionView]
    next_before: CountField | None = None


class ChangeSetView(ResponseModel):
    """A change set. `documents` counts what it changes, `models` how many of them are models.

    `branch` is its name in the studio; empty for none. In a list, `own` says whether the caller has begun it.
    """

    id: str
    title: str
    branch: str
    status: Literal["open", "merged", "discarded"]
    version: CountField
    documents: CountField
    models: CountField
    created_at: InstantField
    changed_at: str
    closed_at: str
    user: str
    own: bool | None = None


class ChangedDocumentView(ResponseModel):
    """A document as it is in a change set, and the version that it has begun with: on a page, as `base`."""

    model: str
    id: str
    base_version: CountField
    version: CountField
    deleted: bool
    slug: str | None = None
    title: str | None = None
    status: _Status | None = None
    published_at: str | None = None
    locales: dict[str, dict[str, Any]] | None = None
    parts: dict[str, int] | None = None
    meta: dict[str, dict[str, Any]] | None = None
    base: DocumentView | None = None


class ChangeSetResponse(ResponseModel):
    """A change set. `may` lists what the caller may do with it: merge, discard."""

    change_set: ChangeSetView
    may: list[Literal["merge", "discard"]] | None = None
    documents: list[ChangedDocumentView] | None = None
    documents_by_model: dict[str, CountField] | None = None
    next_cursor: str | None = None


class ChangeSetListResponse(ResponseModel):
    """The change sets that are open, and those that were closed in the last 30 days, the newest first."""

    change_sets: list[ChangeSetView]


class ChangedDocumentResponse(ResponseModel):
    document: ChangedDocumentView


class AssetAddressResponse(ResponseModel):
    """An address at which anybody can download a file until it expires."""

    url: str
    expires_in_seconds: CountField


class SearchMatchView(ResponseModel):
    """A document that was found. `score` is from 0 to 1."""

    model: str
    id: str
    type: Literal["page", "section_def", "collection", "entry", "image"]
    title: str
    slug: str
    status: _Status
    score: float


class SearchResponse(ResponseModel):
    """The documents that match, the best first."""

    matches: list[SearchMatchView]


class IndexResponse(ResponseModel):
    """A step of the indexing of a space. Without `cursor` it was the last one."""

    seen: CountField
    written: CountField
    cursor: str | None = None


class SearchModelResponse(ResponseModel):
    """The model of the search; empty for the one without a provider."""

    credential_id: str
    model_id: str


class SpaceMemberView(ResponseModel):
    """A member of a space. Without `models` or `locales`, all of them are meant."""

    user: str
    role: str
    models: list[str] | None = None
    locales: list[str] | None = None


class SpaceMemberResponse(ResponseModel):
    member: SpaceMemberView


class SpaceMemberListResponse(ResponseModel):
    """The members by user. Without a list, `isListed` is false: rights alone say who may do what."""

    is_listed: bool
    members: list[SpaceMemberView]


class GitRemoteView(ResponseModel):
    """The repository of a space. `commit` is the one with which the space was synchronised last."""

    url: str
    branch: str
    root: str
    username: str
    has_password: bool
    version: CountField
    commit: str
    synced_at: str


class GitRepositoryResponse(ResponseModel):
    """The repository of a space; null without one."""

    repository: GitRemoteView | None


class GitSyncResponse(ResponseModel):
    """What a pull or a push has changed. `ignored` are files of the repository that nothing was made of."""

    commit: str
    pulled: CountField
    pushed: CountField
    ignored: list[str]


class GitConflictView(ResponseModel):
    """A document of which both sides have changed the same fields."""

    model: str
    id: str
    fields: list[dict[str, Any]]


class GitStatusResponse(ResponseModel):
    """What a pull would change in the space, and a push in the repository. `commit` is empty for an empty branch."""

    commit: str
    incoming: CountField
    outgoing: CountField
    is_synchronised: bool
    conflicts: list[GitConflictView]


class ProjectFilesResponse(ResponseModel):
    """A part of the files of a space, by their paths. `digest` is that of all of them."""

    files: dict[str, str]
    digest: str
    next_cursor: str | None = None


class WrittenProjectResponse(ResponseModel):
    """What an import has changed."""

    written: CountField
    deleted: CountField
    models: CountField
    ignored: list[str]
