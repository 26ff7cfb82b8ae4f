"""Operations on media of content: store uploads as assets, change many at once, and download their files."""

from fermata.wire.bodies.content_requests import AssetChanges, NewAsset, NewAssets
from fermata.wire.operations.common import API_PREFIX, CAN_READ_CONTENT, CAN_WRITE_CONTENT, UPLOAD_EXPIRED
from fermata.wire.operations.content import CONTENT_PATH
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

STORE_ASSET = Operation(
    name="storeAsset",
    function="redraw_images",
    method="POST",
    path=f"{API_PREFIX}/assets/{{site}}/{{environment}}",
    capabilities=CAN_WRITE_CONTENT,
    summary="Store an uploaded file as an asset",
    description="An image (JPEG, PNG, GIF, WebP, AVIF) is drawn anew, without metadata, in up to five sizes. Of an "
    "SVG what draws is kept. A PDF and a video (MP4, WebM) are stored as they are. The same upload is stored once. It "
    "is one of the kind `media`, or `image` of up to 10 MB.",
    body=NewAsset,
    responses=(
        SuccessResponse("The asset that the same upload has made before.", "DocumentResponse"),
        SuccessResponse("The asset.", "DocumentResponse", 201),
    ),
    errors={
        400: "The body is not as described, or the upload is of no kind that is stored, or damaged.",
        402: "The plan of the workspace is locked, or has no room for the file.",
        403: "Changes of this space are reviewed (`reviewRequired`): name a change set.",
        404: "There is no such site, environment or change set, or nothing was uploaded.",
        409: "The upload differs from what was announced, or somebody is storing it at the same moment.",
        410: UPLOAD_EXPIRED,
        413: "The file has too many bytes, pixels or parts.",
    },
)
STORE_ASSETS = Operation(
    name="storeAssets",
    function="redraw_images",
    method="POST",
    path=f"{API_PREFIX}/assets/{{site}}/{{environment}}/bulk",
    capabilities=CAN_WRITE_CONTENT,
    summary="Store up to 50 uploaded files as assets",
    description="The results say what became of each file, in their order. One that is refused keeps no other from "
    "being stored. Files that the time of a request has no room for have the status 503: send the same request again. "
    "What it has stored has the status 200 then.",
    body=NewAssets,
    responses=(SuccessResponse("What became of each.", "AssetResultsResponse"),),
    errors={
        400: "The body is not as described.",
        403: "Changes of this space are reviewed (`reviewRequired`): name a change set.",
        404: "There is no such site or environment.",
    },
)
CHANGE_ASSETS = Operation(
    name="changeAssets",
    function="api",
    method="POST",
    path=f"{CONTENT_PATH}/{{site}}/{{environment}}/assets",
    capabilities=CAN_WRITE_CONTENT,
    summary="Delete up to 50 assets, or change their tags",
    description="The results say what became of each asset. One that is refused keeps no other from being changed. "
    "Deleted assets can be restored for 30 days.",
    body=AssetChanges,
    responses=(SuccessResponse("What became of each.", "AssetChangesResponse"),),
    errors={
        400: "The body is not as described, or there are no tags.",
        403: "Changes of this space are reviewed (`reviewRequired`): name a change set.",
        404: "There is no such site or environment.",
    },
)
DOWNLOAD_ASSET = Operation(
    name="downloadAsset",
    function="api",
    method="GET",
    path=f"{CONTENT_PATH}/{{site}}/{{environment}}/assets/{{asset}}/files/{{file}}",
    capabilities=CAN_READ_CONTENT,
    summary="Download a file of an asset",
    description="A size that is larger than the image is the original. Storage sends a part of it to who asks with "
    "`Range`. A browser that opens the address saves an SVG or a PDF, and shows anything else. With "
    "`Accept: application/json` the response names the address, for pages, whose scripts cannot follow to another "
    "server.",
    parameters=(
        RequestParameter("asset", "The id of the asset.", {"type": "string"}, required=True, location="path"),
        RequestParameter(
            "file",
            "The size: original, thumbnail, small, medium, large, or one of a preset.",
            {"type": "string", "maxLength": 40},
            required=True,
            location="path",
        ),
        RequestParameter(
            "changeSet",
            "The change set as it is in which the asset is meant, while it waits for a review.",
            {"type": "string", "maxLength": 40},
        ),
    ),
    responses=(
        SuccessResponse("The address, if the request asks for JSON only.", "AssetAddressResponse"),
        SuccessResponse("The file is at the address in `Location`, for 15 minutes.", "", 302),
    ),
    errors={400: "A name has another form than names have.", 404: "There is no such site, asset or file."},
)
CONTENT_MEDIA_HANDLERS = (
    (CHANGE_ASSETS, "bulk_asset_requests:change_assets"),
    (DOWNLOAD_ASSET, "asset_requests:redirect_to_asset_file"),
)
