"""Define the response bodies of tokens of sites, of what they read, of exports and imports."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel
from fermata.wire.bodies.responses.content import SpaceView
from fermata.wire.bodies.responses.content_forms import SubmissionView

_Status = Literal["draft", "in_review", "published", "rejected", "archived"]


class DeliveryTokenView(ResponseModel):
    """A token without its secret. Without a document it shows the whole space."""

    id: str
    mode: Literal["published", "preview"]
    model: str | None = None
    document: str | None = None
    expires_at: InstantField | None = None


class NewDeliveryTokenResponse(ResponseModel):
    """The token, whose text is shown once."""

    token: str
    delivery_token: DeliveryTokenView


class DeliveryTokenListResponse(ResponseModel):
    delivery_tokens: list[DeliveryTokenView]


class DeliveredDocumentView(ResponseModel):
    """A document as sites read it. Images are addresses below `/delivery/`."""

    model: str
    id: str
    version: CountField
    slug: str
    title: str
    status: _Status
    published_at: str
    updated_at: InstantField
    locales: dict[str, dict[str, Any]]


class DeliveredDocumentResponse(ResponseModel):
    document: DeliveredDocumentView


class DeliveredListResponse(ResponseModel):
    """Documents in the order of their creation."""

    documents: list[DeliveredDocumentView]
    next_cursor: str | None = None


class ExportedDocumentView(ResponseModel):
    """A document as an import takes it."""

    model: str
    id: str
    slug: str
    title: str
    status: _Status
    locales: dict[str, dict[str, Any]]


class ExportedPageView(ResponseModel):
    """A page as a file."""

    path: str
    html: str


class ContentExportResponse(ResponseModel):
    """A part of an export: documents, pages as HTML, or submissions. The first part of documents has the space and its
    models."""

    version: CountField | None = None
    space: SpaceView | None = None
    models: list[dict[str, Any]] | None = None
    documents: list[ExportedDocumentView] | None = None
    pages: list[ExportedPageView] | None = None
    submissions: list[SubmissionView] | None = None
    next_cursor: str | None = None


class ImportedItemView(ResponseModel):
    """What became of a model (whose `model` is `model`) or a document."""

    model: str
    id: str
    outcome: Literal["created", "changed", "unchanged", "refused"]
    error: str | None = None


class ContentImportResponse(ResponseModel):
    items: list[ImportedItemView]
