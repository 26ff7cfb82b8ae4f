"""Define operations on the service itself: health, version, OpenAPI document. Only the test model needs a token."""

from dataclasses import replace

from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_PROVIDERS
from fermata.wire.operations.operation import Operation, PublicOperation, SuccessResponse

SHOW_HEALTH = PublicOperation(
    name="showHealth",
    function="api",
    method="GET",
    path="/healthz",
    summary="Ask whether the service answers",
    responses=(SuccessResponse("It answers.", "OkResponse"),),
)
SHOW_VERSION = PublicOperation(
    name="showVersion",
    function="api",
    method="GET",
    path="/version",
    summary="Ask which version this is",
    responses=(SuccessResponse("The version and the stage.", "VersionResponse"),),
)
SHOW_HEALTH_HERE = replace(SHOW_HEALTH, name="showHealthHere", path=f"{API_PREFIX}/healthz")
SHOW_VERSION_HERE = replace(SHOW_VERSION, name="showVersionHere", path=f"{API_PREFIX}/version")
SHOW_OPENAPI = PublicOperation(
    name="showOpenApi",
    function="api",
    method="GET",
    path=f"{API_PREFIX}/openapi.json",
    summary="Fetch this document",
    responses=(SuccessResponse("An OpenAPI 3.1 document.", "Document"),),
)
ASK_TEST_MODEL = Operation(
    name="askTestModel",
    function="stream_turns",
    method="POST",
    path=f"{API_PREFIX}/test-model/v1/chat/completions",
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Ask a model that always answers the same",
    description="`fermata doctor` runs a turn with it: through a credential of the provider openai-compatible, whose "
    "address ends with /test-model and whose key is a token. The request is not read.",
    responses=(SuccessResponse("Chunks of a chat completion.", media_type=EVENT_STREAM),),
)
