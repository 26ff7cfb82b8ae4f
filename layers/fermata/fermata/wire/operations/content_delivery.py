"""Operations by which sites read content with a token, and by which spaces are exported and imported."""

from fermata.wire.bodies.content_requests import ContentImport, NewDeliveryToken
from fermata.wire.operations.common import CAN_READ_CONTENT, CAN_WRITE_CONTENT, OK_RESPONSES, make_integer_parameter
from fermata.wire.operations.content import CONTENT_PATH
from fermata.wire.operations.operation import Operation, PublicOperation, RequestParameter, SuccessResponse

DELIVERY_PATH = "/delivery/{token}"
_SPACE_PATH = f"{CONTENT_PATH}/{{site}}/{{environment}}"
_TOKENS_PATH = f"{_SPACE_PATH}/delivery-tokens"
_NO_SPACE = {400: "A name has another form than names have.", 404: "There is no such site or environment."}
_NOT_SHOWN = {
    400: "A parameter has another form than described.",
    404: "The token has expired or was revoked, or it does not show this.",
}
_TOKEN = RequestParameter("token", "A delivery token.", {"type": "string"}, required=True, location="path")
_IF_NONE_MATCH = RequestParameter(
    "If-None-Match",
    "The `ETag` of what is there. 304 without a body if it is current.",
    {"type": "string", "maxLength": 200},
    location="header",
)
_CURSOR = RequestParameter("cursor", "`nextCursor` of the response before.", {"type": "string", "maxLength": 100})
_UNCHANGED = {304: "It is as it was."}
_DOCUMENT = (SuccessResponse("The document. `ETag` names what it says.", "DeliveredDocumentResponse"),)

ISSUE_DELIVERY_TOKEN = Operation(
    name="issueDeliveryToken",
    function="api",
    method="POST",
    path=_TOKENS_PATH,
    capabilities=CAN_WRITE_CONTENT,
    summary="Issue a token with which a site reads content",
    description="`published` shows what is published, and needs `ai.content.manage`. `preview` also shows drafts, of "
    "one document or all, for a day or at most a week. The token is shown once.",
    body=NewDeliveryToken,
    responses=(SuccessResponse("The token.", "NewDeliveryTokenResponse", 201),),
    errors=_NO_SPACE | {429: "The space has as many tokens as it may have, or the caller has reached a limit."},
)
LIST_DELIVERY_TOKENS = Operation(
    name="listDeliveryTokens",
    function="api",
    method="GET",
    path=_TOKENS_PATH,
    capabilities=CAN_WRITE_CONTENT,
    summary="List the tokens of a space",
    responses=(SuccessResponse("The tokens without their secrets.", "DeliveryTokenListResponse"),),
    errors=_NO_SPACE,
)
REVOKE_DELIVERY_TOKEN = Operation(
    name="revokeDeliveryToken",
    function="api",
    method="DELETE",
    path=f"{_TOKENS_PATH}/{{tokenId}}",
    capabilities=CAN_WRITE_CONTENT,
    summary="Revoke a token",
    parameters=(
        RequestParameter("tokenId", "The id of the token.", {"type": "string"}, required=True, location="path"),
    ),
    responses=OK_RESPONSES,
    errors=_NO_SPACE | {404: "There is no such token."},
)
DELIVER_LIST = PublicOperation(
    name="deliverDocuments",
    function="api",
    method="GET",
    path=f"{DELIVERY_PATH}/documents/{{model}}",
    summary="Read documents of a model with a token",
    parameters=(
        _TOKEN,
        make_integer_parameter("limit", "The greatest number of documents; 20 without it.", 1, 50),
        _CURSOR,
        RequestParameter("category", "Only posts of it.", {"type": "string", "maxLength": 64}),
        _IF_NONE_MATCH,
    ),
    responses=(SuccessResponse("A page of the list. `ETag` names what it says.", "DeliveredListResponse"),),
    errors=_NOT_SHOWN | _UNCHANGED,
)
DELIVER_DOCUMENT = PublicOperation(
    name="deliverDocument",
    function="api",
    method="GET",
    path=f"{DELIVERY_PATH}/documents/{{model}}/{{document}}",
    summary="Read a document with a token",
    parameters=(_TOKEN, _IF_NONE_MATCH),
    responses=_DOCUMENT,
    errors=_NOT_SHOWN | _UNCHANGED,
)
DELIVER_SLUG = PublicOperation(
    name="deliverSlug",
    function="api",
    method="GET",
    path=f"{DELIVERY_PATH}/slugs/{{model}}/{{slug}}",
    summary="Read the document that has a slug, with a token",
    parameters=(
        _TOKEN,
        RequestParameter("slug", "The slug.", {"type": "string"}, required=True, location="path"),
        _IF_NONE_MATCH,
    ),
    responses=_DOCUMENT,
    errors=_NOT_SHOWN | _UNCHANGED,
)
DELIVER_ASSET = PublicOperation(
    name="deliverAsset",
    function="api",
    method="GET",
    path=f"{DELIVERY_PATH}/assets/{{asset}}/{{file}}",
    summary="Download a file of an asset with a token",
    parameters=(
        _TOKEN,
        RequestParameter("asset", "The id of the asset.", {"type": "string"}, required=True, location="path"),
        RequestParameter(
            "file",
            "The size: original, thumbnail, small, medium or large.",
            {"type": "string"},
            required=True,
            location="path",
        ),
    ),
    responses=(SuccessResponse("The file is at the address in `Location`, for 15 minutes.", "", 302),),
    errors=_NOT_SHOWN,
)
EXPORT_CONTENT = Operation(
    name="exportContent",
    function="api",
    method="GET",
    path=f"{_SPACE_PATH}/export",
    capabilities=CAN_READ_CONTENT,
    summary="Export a space in parts, as JSON or as HTML pages, or the submissions of its forms",
    description="The first part of JSON has the space and its models. HTML has what is published, in each language. Of "
    "submissions, moderators are told what was sent and by whom; others, which fields are filled in.",
    parameters=(
        RequestParameter(
            "format",
            "json, html or submissions; json without it.",
            {"type": "string", "enum": ["json", "html", "submissions"]},
        ),
        _CURSOR,
    ),
    responses=(SuccessResponse("A part. Without `nextCursor` it is the last one.", "ContentExportResponse"),),
    errors=_NO_SPACE,
)
IMPORT_CONTENT = Operation(
    name="importContent",
    function="api",
    method="POST",
    path=f"{_SPACE_PATH}/import",
    capabilities=CAN_WRITE_CONTENT,
    summary="Import models and documents",
    description="At most 100 models and 25 documents at once, under their own ids. It may be repeated: what is there "
    "already stays as it is. One that is refused keeps the others from nothing. Models need `ai.content.manage`.",
    body=ContentImport,
    responses=(SuccessResponse("What became of each.", "ContentImportResponse"),),
    errors=_NO_SPACE | {413: "The body is too large."},
)
DELIVERY_HANDLERS = (
    (ISSUE_DELIVERY_TOKEN, "delivery_requests:issue_token"),
    (LIST_DELIVERY_TOKENS, "delivery_requests:list_issued_tokens"),
    (REVOKE_DELIVERY_TOKEN, "delivery_requests:revoke_token"),
    (EXPORT_CONTENT, "delivery_requests:export_content"),
    (IMPORT_CONTENT, "delivery_requests:import_into_space"),
)
PUBLIC_DELIVERY_HANDLERS = (
    (DELIVER_LIST, "delivery_requests:deliver_page_of_list"),
    (DELIVER_DOCUMENT, "delivery_requests:deliver_by_id"),
    (DELIVER_SLUG, "delivery_requests:deliver_by_slug"),
    (DELIVER_ASSET, "delivery_requests:deliver_asset"),
)
