"""Make the attempts of a built-in tool within a turn, and keep the images that it makes."""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.aws.blob_store import conversation_folder
from fermata.aws.resources import Resources
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.remote_tools.built_in.built_in_call import BuiltInCall, StorePhoto
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.remote_tools.enable_built_in_tool import API_KEY_MEMBER
from fermata.remote_tools.paid_request_report import ReportPaidRequest
from fermata.remote_tools.signed_tool_attempt import RemoteCallContext
from fermata.remote_tools.tool_definition import ToolDefinition, ToolSecrets

IMAGE_URL_SECONDS = 7 * 86_400
"""How long the address of a generated image is good for at most. The image stays as long as its conversation."""


def make_built_in_attempt(
    resources: Resources,
    definition: ToolDefinition,
    secrets: ToolSecrets,
    connection: ProviderConnection,
    context: RemoteCallContext,
    effect_key: str,
    report_paid_request: ReportPaidRequest,
    store_photo: StorePhoto,
) -> Callable[[Mapping[str, Any]], Any]:
    """Return the function that makes one attempt with valid arguments.

    Args:
        resources: The bucket.
        definition: The version of the tool.
        secrets: With the key of the service behind it.
        connection: Checks every address.
        context: The turn's tenant and conversation.
        effect_key: The same for every attempt.
        report_paid_request: Is called for each request that costs something.
        store_photo: As in `BuiltInCall`.
    """
    tool = BUILT_IN_TOOLS_BY_NAME[definition.parsed_manifest.name]

    def store_image(content: bytes, mime_type: str) -> str:
        key = resources.blobs.put_bytes(conversation_folder(context.site, context.session), content, mime_type)
        return resources.blobs.presign_get(key, IMAGE_URL_SECONDS)

    def attempt(arguments: Mapping[str, Any]) -> Any:
        api_key = secrets.headers.get(API_KEY_MEMBER, "")
        call = BuiltInCall(
            arguments,
            api_key,
            definition.options,
            connection,
            store_image,
            effect_key,
            report_paid_request,
            store_photo,
        )
        return tool.run(call)

    return attempt
