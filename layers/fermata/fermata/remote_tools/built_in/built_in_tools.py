"""List the built-in tools: the manifest of each, and the function that makes one attempt."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from fermata.domain.value_dataclass import value_dataclass
from fermata.remote_tools.tool_manifest import ToolManifest, parse_manifest

if TYPE_CHECKING:
    from fermata.remote_tools.built_in.built_in_call import BuiltInCall

_MODULES = "fermata.remote_tools.built_in"


@value_dataclass(frozen=True)
class BuiltInTool:
    """A built-in tool.

    Attributes:
        path: The function that makes one attempt, as `package.module:name`. It is loaded when the tool is called, so
            that functions that only list tools do not import httpx.
        options: The options that an administrator may set; those that end with `!` are required.
    """

    manifest: ToolManifest
    path: str
    needs_key: bool = True
    takes_key: bool = False
    """Whether it has a key that it can do without."""
    writes_to_site: bool = False
    """Whether all that it changes is the site of the turn, by the rules of its own tools. Nobody has to approve it."""
    options: tuple[str, ...] = ()

    def run(self, call: "BuiltInCall") -> Any:
        """Make one attempt. Raises AttemptFailed."""
        return cast(Callable[["BuiltInCall"], Any], resolve_name(self.path))(call)


def _closed(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": dict(properties),
    }


_TEXT = {"type": "string"}
_ITEM = _closed(
    dict.fromkeys(("id", "imageUrl", "thumbUrl", "alt", "author", "sourceUrl"), _TEXT),
    *("id", "imageUrl", "thumbUrl", "alt", "author", "sourceUrl"),
)
_ITEMS = _closed({"items": {"type": "array", "items": _ITEM}}, "items")
_PHOTO = _closed(
    dict.fromkeys(("imageUrl", "alt", "author", "sourceUrl", "photoId"), _TEXT),
    *("imageUrl", "alt", "author", "sourceUrl", "photoId"),
)
_IMAGE_INPUT = _closed(
    {
        "prompt": _TEXT,
        "aspectRatio": {"type": "string", "enum": ["landscape", "square", "portrait"]},
        "quality": {"type": "string", "enum": ["draft", "final"]},
        "style": _TEXT,
        "background": {"type": "string", "enum": ["transparent", "opaque", "auto"]},
        "outputFormat": {"type": "string", "enum": ["png", "webp", "jpeg"]},
        "blockType": _TEXT,
        "blockId": _TEXT,
        "pageSlug": _TEXT,
    },
    "prompt",
)
_IMAGE = _closed(
    {"imageUrl": _TEXT, "alt": _TEXT, "width": {"type": "integer"}, "height": {"type": "integer"}},
    *("imageUrl", "alt", "width", "height"),
)
_WEB_CATEGORIES = (
    *("company", "research paper", "news", "pdf", "github", "tweet", "personal site", "linkedin profile"),
    "financial report",
)
_HTTP_RESPONSE = {"type": "object", "required": ["status", "body"], "properties": {"status": {"type": "integer"}}}


def _manifest(
    name: str,
    description: str,
    schemas: tuple[dict[str, Any], dict[str, Any]],
    timeout_ms: int,
    *,
    attempts: int = 2,
    backoff_ms: int = 200,
    writes: bool = False,
    idempotent: bool = True,
) -> ToolManifest:
    return parse_manifest(
        {
            "name": name,
            "description": description,
            "inputSchema": schemas[0],
            "outputSchema": schemas[1],
            "capability": "write" if writes else "read",
            "timeoutMs": timeout_ms,
            "retryPolicy": {"maxAttempts": attempts, "backoffMs": backoff_ms},
            "idempotent": idempotent,
        }
    )


_QUERY = _closed({"query": _TEXT, "limit": {"type": "integer"}}, "query")
_OPTIONAL_QUERY = _closed({"query": _TEXT, "limit": {"type": "integer"}})
_TOOLS = (
    BuiltInTool(
        _manifest(
            "unsplash.search",
            "Searches licensed photos. `limit` is 1 to 5. Author and source link have to be shown beside a photo.",
            (_QUERY, _ITEMS),
            6000,
            backoff_ms=150,
        ),
        f"{_MODULES}.unsplash:search_photos",
    ),
    BuiltInTool(
        _manifest(
            "unsplash.get_by_id",
            "Returns a photo that is going to be used, by its photoId or the url of its page.",
            (_closed({"url": _TEXT, "photoId": _TEXT}), _PHOTO),
            6000,
        ),
        f"{_MODULES}.unsplash:get_photo",
    ),
    BuiltInTool(
        _manifest(
            "image.generate",
            "Generates an image from a description. It takes up to a minute.",
            (_IMAGE_INPUT, _IMAGE),
            90_000,
            attempts=1,
            backoff_ms=0,
            idempotent=False,
        ),
        f"{_MODULES}.image_generation:generate_image",
        options=("provider", "model"),
    ),
    BuiltInTool(
        _manifest(
            "gdrive.browse",
            "Lists pictures of the workspace's folder in Google Drive. `limit` is 1 to 10.",
            (_OPTIONAL_QUERY, _ITEMS),
            8000,
        ),
        f"{_MODULES}.google_drive:browse_folder",
        options=("folderId!",),
    ),
    BuiltInTool(
        _manifest(
            "http_get",
            "Fetches a URL of a host that may be reached. The response is JSON or text.",
            (_closed({"url": _TEXT}, "url"), _HTTP_RESPONSE),
            10_000,
        ),
        f"{_MODULES}.http_requests:get_url",
        needs_key=False,
        options=("hosts!",),
    ),
    BuiltInTool(
        _manifest(
            "http_post",
            "Sends JSON to a URL of a host that may be reached. A person approves it first.",
            (_closed({"url": _TEXT, "body": {}}, "url"), _HTTP_RESPONSE),
            10_000,
            attempts=1,
            writes=True,
            idempotent=False,
        ),
        f"{_MODULES}.http_requests:post_to_url",
        needs_key=False,
        options=("hosts!",),
    ),
)
_DOMAINS = {"type": "array", "items": _TEXT}
_WEB_RESULT = {"type": "object", "required": ["success"], "properties": {"success": {"type": "boolean"}}}
_WEB_TOOLS = (
    BuiltInTool(
        _manifest(
            "web_quickSearch",
            "Searches the web, and returns pages with a few sentences of each.",
            (
                _closed(
                    {
                        "query": _TEXT,
                        "numResults": {"type": "integer"},
                        "category": {"type": "string", "enum": list(_WEB_CATEGORIES)},
                        "includeDomains": _DOMAINS,
                        "excludeDomains": _DOMAINS,
                        "recentOnly": {"type": "boolean"},
                        "livecrawl": {"type": "string", "enum": ["never", "fallback", "always", "preferred"]},
                    },
                    "query",
                ),
                _WEB_RESULT,
            ),
            20_000,
        ),
        f"{_MODULES}.web_research:search_web",
        needs_key=False,
        takes_key=True,
        options=("baseUrl", "searchUrl", "keyHeader", "resultsPath", "titleField", "urlField", "snippetField"),
    ),
    BuiltInTool(
        _manifest(
            "web_fetchContent",
            "Returns the text of up to 10 web pages.",
            (
                _closed(
                    {
                        "urls": _DOMAINS,
                        "includeText": {"type": "boolean"},
                        "textMaxCharacters": {"type": "integer"},
                        "includeSummary": {"type": "boolean"},
                        "summaryQuery": _TEXT,
                    },
                    "urls",
                ),
                _WEB_RESULT,
            ),
            30_000,
        ),
        f"{_MODULES}.web_research:fetch_pages",
        needs_key=False,
        takes_key=True,
        options=("baseUrl", "hosts"),
    ),
    BuiltInTool(
        _manifest(
            "web_deepResearch",
            "Researches a topic and returns a report with its sources. If it is not finished in time, call it again "
            "with the researchId of its answer.",
            (
                _closed(
                    {
                        "topic": _TEXT,
                        "sections": _DOMAINS,
                        "includeStatistics": {"type": "boolean"},
                        "model": {"type": "string", "enum": ["exa-research", "exa-research-pro"]},
                        "maxWaitTime": {"type": "integer"},
                        "researchId": _TEXT,
                    },
                    "topic",
                ),
                _WEB_RESULT,
            ),
            120_000,
            attempts=1,
            backoff_ms=0,
            idempotent=False,
        ),
        f"{_MODULES}.web_research:research_topic",
        options=("baseUrl",),
    ),
)
_PEXELS_TOOLS = (
    BuiltInTool(
        _manifest(
            "pexels_searchPhotos",
            "Searches stock photos of Pexels. `perPage` is 1 to 80. Photographer and source link have to be shown "
            "beside a photo that is used.",
            (
                _closed(
                    {
                        "query": _TEXT,
                        "perPage": {"type": "integer"},
                        "orientation": {"type": "string", "enum": ["landscape", "portrait", "square"]},
                        "color": _TEXT,
                    },
                    "query",
                ),
                _WEB_RESULT,
            ),
            15_000,
        ),
        f"{_MODULES}.pexels:search_pexels",
    ),
    BuiltInTool(
        _manifest(
            "pexels_downloadPhoto",
            "Stores a photo of Pexels, which pexels_searchPhotos has found, as an image of the site. Photographer and "
            "source link have to be shown beside it.",
            (_closed({"photoId": {"type": "integer"}}, "photoId"), _WEB_RESULT),
            45_000,
            attempts=1,
            backoff_ms=0,
            writes=True,
            idempotent=False,
        ),
        f"{_MODULES}.pexels:download_pexels",
        writes_to_site=True,
    ),
)
BUILT_IN_TOOLS_BY_NAME = {tool.manifest.name: tool for tool in (*_TOOLS, *_WEB_TOOLS, *_PEXELS_TOOLS)}
BUILT_IN_ENDPOINT_PREFIX = "builtin:"
