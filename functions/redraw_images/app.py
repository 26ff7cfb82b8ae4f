"""Redraw uploaded images and store them as assets. Only this function decodes files for the content store."""

from fermata.aws.resources import prepare_function
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.routing import Router
from fermata.wire.operations import content_media

router = Router("redraw_images")
router.handles_by_path(content_media.STORE_ASSET, "fermata.content_api.asset_requests:store_uploaded_asset")
router.handles_by_path(content_media.STORE_ASSETS, "fermata.content_api.bulk_asset_requests:store_uploaded_assets")

handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms")
