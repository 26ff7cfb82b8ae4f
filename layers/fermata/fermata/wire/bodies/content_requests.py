"""Define the bodies of requests on content: spaces, models, documents, change sets."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fermata.wire.bodies.fields import JSON_INTEGER, StrictBody, UploadRef

_SPACE_NAME = r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"
_LOCALE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$"
_DOMAIN = r"^[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?$"
_SpaceName = Annotated[str, StringConstraints(pattern=_SPACE_NAME)]
_DocumentId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]
_Slug = Annotated[str, StringConstraints(pattern=r"^([a-z0-9-]{2,64})?$")]
_Title = Annotated[str, StringConstraints(max_length=500)]
_Status = Literal["draft", "in_review", "published", "rejected", "archived"]
_ChangeSetId = Annotated[str, StringConstraints(max_length=40)]
_Tags = Annotated[list[Annotated[str, StringConstraints(max_length=100)]], Field(max_length=50)]
_Statuses = Annotated[dict[str, _Status], Field(max_length=51)]
_Locales = Annotated[dict[str, dict[str, Any]], Field(max_length=51)]


class NewSpace(StrictBody):
    """A space: an environment of a site. The first locale is the default."""

    site: _SpaceName
    environment: _SpaceName = "main"
    title: _Title = ""
    locales: Annotated[list[Annotated[str, StringConstraints(pattern=_LOCALE)]], Field(min_length=1, max_length=50)] = (
        Field(default_factory=lambda: ["en"])
    )
    domain: Annotated[str, StringConstraints(max_length=253)] = ""


class ModelDefinition(StrictBody):
    """A whole model. `fields` has a definition by name; docs/content.md lists the types and what a field may ask.

    `domain` is the part of the site that its documents belong to, and the folder of their files. `form` says how
    visitors submit entries of it (docs/forms.md); without the member, the form stays as it is, and null removes it.
    Members that an import has brought may be repeated, and stay without it.
    """

    model_config = ConfigDict(extra="allow")

    kind: Literal["singleton", "collection", "document", "dictionary", "page", "section"]
    domain: Annotated[str, StringConstraints(pattern=_DOMAIN)] = "site"
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    i18n: bool = False
    fields: Annotated[dict[str, dict[str, Any]], Field(max_length=200)] = Field(default_factory=dict)
    form: dict[str, Any] | None = None


class DocumentChange(StrictBody):
    """What changes. In `locales`, fields that are named are replaced, and those that are null are removed.

    Another `status` is that of all languages; `statuses` has those of single ones, by locale.
    """

    slug: _Slug | None = None
    title: _Title | None = None
    status: _Status | None = None
    statuses: _Statuses | None = None
    locales: _Locales | None = None


class NewDocument(DocumentChange):
    """A document. Content that is the same in all languages is under `data`. Without an id it gets one."""

    id: _DocumentId | None = None


class DocumentInChangeSet(DocumentChange):
    """What changes in a change set; with `deleted`, the document goes when the change set is merged."""

    deleted: bool = False


class NewChangeSet(StrictBody):
    """A change set to begin."""

    title: _Title = ""


class ChangeSetMerge(StrictBody):
    """Whose values count where others have changed the same fields; without it, these are conflicts.

    With `allowBreaking`, models may change so that their documents may not fit any more.
    """

    prefer: Literal["ours", "theirs"] | None = None
    allow_breaking: bool = False


class MemberRights(StrictBody):
    """What a member may do; `models` and `locales` are the only ones, without them all."""

    role: Literal["viewer", "reviewer", "editor"]
    models: Annotated[list[_DocumentId], Field(max_length=300)] | None = None
    locales: Annotated[list[Annotated[str, StringConstraints(pattern=_LOCALE)]], Field(max_length=50)] | None = None


class NewGitRemote(StrictBody):
    """A Git repository. `root` is the folder of the project in it. With `password` it is entered anew."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    branch: Annotated[str, StringConstraints(min_length=1, max_length=250)] = "main"
    root: Annotated[str, StringConstraints(max_length=500)] = ""
    username: Annotated[str, StringConstraints(max_length=200)] = ""
    password: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None


class NewCaptcha(StrictBody):
    """The captcha of a site's forms. With `secret` it is entered anew."""

    service: Literal["turnstile", "hcaptcha", "recaptcha"]
    site_key: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
    secret: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[!-~]+$")] | None = None


class GitPull(StrictBody):
    """Whose values count in a conflict: `theirs` are those of the repository. Without it, nothing is changed then."""

    prefer: Literal["ours", "theirs"] | None = None


class GitPush(GitPull):
    """What the commit says, and whose values count in a conflict."""

    message: Annotated[str, StringConstraints(max_length=2000)] = ""


class ProjectImport(StrictBody):
    """The text of each file by its path, or the reference of an upload with them."""

    files: Annotated[dict[str, str], Field(max_length=50_000)] | None = None
    upload_ref: UploadRef | None = None


class NewFile(StrictBody):
    """An uploaded file. `uploadRef` is the `ref` that `POST uploads` has answered.

    `preset` names sizes that an image has too: `hero-image`, `avatar`, `gallery`, `icon`, `logo`, or one that the
    project has in `mediaVariants`.
    """

    upload_ref: UploadRef
    filename: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    alt: _Title = ""
    tags: _Tags = Field(default_factory=list)
    preset: Annotated[str, StringConstraints(max_length=40)] = ""


class NewAsset(NewFile):
    """An uploaded file to store. `uploadRef` is the `ref` that `POST uploads` has answered.

    With `changeSet` it is an asset in that change set only, until that is merged.
    """

    change_set: _ChangeSetId | None = None


class NewAssets(StrictBody):
    """Uploaded files to store, in this order. With `changeSet` they are assets in that change set only."""

    files: Annotated[list[NewFile], Field(min_length=1, max_length=50)]
    change_set: _ChangeSetId | None = None


class AssetChanges(StrictBody):
    """What becomes of assets: they are deleted, or get `tags`, or lose them. With `changeSet`, when that is merged."""

    ids: Annotated[list[_DocumentId], Field(min_length=1, max_length=50)]
    action: Literal["delete", "addTags", "removeTags"]
    tags: _Tags = Field(default_factory=list)
    change_set: _ChangeSetId | None = None


class IndexStep(StrictBody):
    """Which documents are indexed next: those after `cursor`; with `again` also those that are indexed as they are."""

    cursor: Annotated[str, StringConstraints(max_length=100)] = ""
    again: bool = False


class SearchModel(StrictBody):
    """The model of the search; both empty for the one without a provider."""

    credential_id: Annotated[str, StringConstraints(max_length=64)] = ""
    model_id: Annotated[str, StringConstraints(max_length=200)] = ""


class NewDeliveryToken(StrictBody):
    """What a token shows: what is published, or also drafts; of one document, or of all of the space."""

    mode: Literal["published", "preview"]
    model: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,39})?$")] = ""
    document: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,39})?$")] = ""
    expires_in_seconds: Annotated[int, Field(ge=60, le=31_536_000), JSON_INTEGER] | None = None


class ImportedDocument(StrictBody):
    """A document as an export has it."""

    model: Annotated[str, StringConstraints(max_length=40)]
    id: Annotated[str, StringConstraints(max_length=40)]
    slug: Annotated[str, StringConstraints(max_length=64)] = ""
    title: _Title = ""
    status: _Status = "draft"
    statuses: _Statuses = Field(default_factory=dict)
    locales: _Locales = Field(default_factory=dict)


class ContentImport(StrictBody):
    """Models and documents as an export has them. What the space is called is not needed."""

    models: Annotated[list[dict[str, Any]], Field(max_length=100)] = Field(default_factory=list)
    documents: Annotated[list[ImportedDocument], Field(max_length=25)] = Field(default_factory=list)


class AssetDescription(StrictBody):
    """The model that describes an image; the default of the scope content without it. The texts are in `locale`."""

    credential_id: Annotated[str, StringConstraints(max_length=64)] = ""
    model_id: Annotated[str, StringConstraints(max_length=200)] = ""
    locale: Annotated[str, StringConstraints(pattern=_LOCALE)] = "en"


class NewSubmission(StrictBody):
    """What a visitor has filled in, by the names of the fields, with the honeypot if there is one."""

    data: Annotated[dict[str, Any], Field(max_length=200)]
    locale: Annotated[str, StringConstraints(max_length=40)] = ""


class SubmissionDecision(StrictBody):
    """What becomes of a submission."""

    status: Literal["pending", "approved", "rejected", "spam"]


class SubmissionDecisions(StrictBody):
    """What becomes of submissions."""

    ids: Annotated[list[Annotated[str, StringConstraints(max_length=40)]], Field(min_length=1, max_length=50)]
    action: Literal["pending", "approved", "rejected", "spam", "delete"]
