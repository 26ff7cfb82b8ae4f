"""Operations on content that ask models: they search a space, index it, and describe images."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.content_requests import AssetDescription, IndexStep, SearchModel
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_CONTENT, CAN_READ_CONTENT, make_integer_parameter
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_INDEX_PATH = f"{API_PREFIX}/content-index/{{site}}/{{environment}}"
_OF_PROVIDER = {
    400: "The request is not as described.",
    402: "A budget does not cover the request to the model.",
    404: "There is no such site, environment or credential.",
    409: "The credential's key can no longer be decrypted.",
    502: "The provider refuses the request.",
    503: "The provider failed, or somebody indexes the same document. Try again.",
}
_MODEL_RESPONSES = (SuccessResponse("The model; empty for the search without a provider.", "SearchModelResponse"),)

SEARCH_CONTENT = Operation(
    name="searchContent",
    function="credentials",
    method="GET",
    path=f"{API_PREFIX}/content-search/{{site}}/{{environment}}",
    capabilities=CAN_READ_CONTENT,
    summary="Search the documents of a space",
    description="Equal titles and slugs first, then what contains the query, what is spelled alike, and what means the "
    "same. Scores are from 0 to 1.",
    parameters=(
        RequestParameter(
            "query", "What is looked for.", {"type": "string", "minLength": 1, "maxLength": 500}, required=True
        ),
        RequestParameter(
            "type",
            "Only documents of this type.",
            {"type": "string", "enum": ["page", "section_def", "collection", "entry", "image"]},
        ),
        make_integer_parameter("limit", "The greatest number of documents; 10 without it.", 1, 50),
    ),
    responses=(SuccessResponse("The documents, the best first.", "SearchResponse"),),
    errors=_OF_PROVIDER,
)
INDEX_CONTENT = Operation(
    name="indexContent",
    function="credentials",
    method="POST",
    path=_INDEX_PATH,
    capabilities=CAN_MANAGE_CONTENT,
    summary="Index the next documents of a space",
    description="Changes are indexed by themselves. Repeat it with `cursor` until there is none, after another model "
    "was chosen. It may be repeated and begun again.",
    body=IndexStep,
    requires_body=False,
    responses=(SuccessResponse("How many documents were looked at and written.", "IndexResponse"),),
    errors=_OF_PROVIDER | {429: "The user or the workspace has reached a limit of prompts."},
)
SHOW_SEARCH_MODEL = Operation(
    name="showSearchModel",
    function="credentials",
    method="GET",
    path=_INDEX_PATH,
    capabilities=CAN_READ_CONTENT,
    summary="Show the model of the search",
    responses=_MODEL_RESPONSES,
    errors={400: _OF_PROVIDER[400], 404: _OF_PROVIDER[404]},
)
SET_SEARCH_MODEL = Operation(
    name="setSearchModel",
    function="credentials",
    method="PUT",
    path=_INDEX_PATH,
    capabilities=CAN_MANAGE_CONTENT,
    summary="Choose the model of the search",
    description="A model for embeddings of OpenAI, Gemini, OpenRouter, Ollama or a compatible server. It is asked once "
    "before. Index the space afterwards. Without a model, texts are compared by their letters.",
    body=SearchModel,
    responses=_MODEL_RESPONSES,
    errors=_OF_PROVIDER,
)
DESCRIBE_ASSET = Operation(
    name="describeAsset",
    function="credentials",
    method="POST",
    path=f"{API_PREFIX}/asset-descriptions/{{site}}/{{environment}}/{{asset}}",
    capabilities=(Capability.WRITE_CONTENT, Capability.CONTENT),
    summary="Let a model describe an image",
    description="It fills the alternative text, the description and the tags that the asset does not have yet. It "
    "counts as a prompt, and against budgets.",
    parameters=(RequestParameter("asset", "The asset.", {"type": "string"}, required=True, location="path"),),
    body=AssetDescription,
    requires_body=False,
    responses=(SuccessResponse("The asset.", "DocumentResponse"),),
    errors=_OF_PROVIDER
    | {
        400: "The body is not as described, no model is set, or it does not see images.",
        403: "Changes of this space are reviewed (`reviewRequired`), and yours are not made here.",
        404: "There is no such site, asset or credential.",
        422: "The model's answer does not have the required form.",
        429: "The user or the workspace has reached a limit of prompts.",
    },
)
CONTENT_SEARCH_HANDLERS = (
    (SEARCH_CONTENT, "search_requests:search_documents"),
    (INDEX_CONTENT, "search_requests:index_space"),
    (SHOW_SEARCH_MODEL, "search_requests:show_search_model"),
    (SET_SEARCH_MODEL, "search_requests:set_search_model"),
    (DESCRIBE_ASSET, "search_requests:describe_stored_asset"),
)
