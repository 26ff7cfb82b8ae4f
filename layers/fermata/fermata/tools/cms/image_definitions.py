"""Define the tools that search the site, and those for its images (decision 0465)."""

from fermata.tools.cms import image_tools, search_tools
from fermata.tools.cms.input_schemas import Schema, make_object_schema
from fermata.tools.cms.tool_factory import make_cms_read, make_cms_write
from fermata.tools.tool import Risk

_TEXT: Schema = {"type": "string"}
_LOCALE: Schema = {"type": "string", "description": "locale code; the default language of the site without it"}


def _limit(default: int, maximum: int) -> Schema:
    return {"type": "integer", "default": default, "minimum": 1, "maximum": maximum}


CMS_SEARCH_TOOLS = (
    make_cms_read(
        "cms_findResource",
        "Finds pages, section definitions or collections by name or slug, also with typing errors.",
        make_object_schema(
            {
                "query": _TEXT,
                "resourceType": {"type": "string", "enum": ["page", "section", "collection"], "default": "page"},
                "type": {"type": "string", "description": "alias used by prompts"},
            },
            "query",
        ),
        search_tools.find_resource,
    ),
    make_cms_read(
        "cms_searchPages",
        "Finds pages of the site by what their text means.",
        make_object_schema({"query": _TEXT, "limit": _limit(3, 20)}, "query"),
        search_tools.search_pages,
    ),
    make_cms_read(
        "search_vector",
        "Finds pages, section definitions, collections or entries by what they mean.",
        make_object_schema(
            {
                "query": _TEXT,
                "type": {"type": "string", "enum": ["page", "section_def", "collection", "entry"]},
                "limit": _limit(3, 20),
            },
            "query",
        ),
        search_tools.search_vector,
    ),
)
CMS_IMAGE_TOOLS = (
    make_cms_read(
        "cms_listAllImages",
        "Lists the images of the site with their alternative texts and tags.",
        make_object_schema(
            {
                "limit": {"type": "integer", "default": 50, "maximum": 200},
                "status": {"type": "string", "enum": ["completed", "processing", "failed"]},
            }
        ),
        image_tools.list_all_images,
    ),
    make_cms_read(
        "cms_listConversationImages",
        "Lists the images that the user has sent in this conversation.",
        make_object_schema({"sessionId": {"type": "string", "description": "not needed: this conversation is meant"}}),
        image_tools.list_conversation_images,
    ),
    make_cms_read(
        "cms_findImage",
        "Finds the image of the site that fits a description best.",
        make_object_schema({"description": _TEXT}, "description"),
        image_tools.find_image,
    ),
    make_cms_read(
        "cms_searchImages",
        "Finds images of the site, each with how well it fits.",
        make_object_schema(
            {"query": _TEXT, "limit": _limit(10, 50), "minScore": {"type": "number", "default": -0.7}}, "query"
        ),
        image_tools.search_images,
    ),
    make_cms_write(
        "cms_updateSectionImage",
        "Puts an image of the site into an image field of a section.",
        make_object_schema(
            {"pageSectionId": _TEXT, "imageField": _TEXT, "imageId": _TEXT, "localeCode": _LOCALE},
            *("pageSectionId", "imageField", "imageId"),
        ),
        image_tools.use_section_image,
    ),
    make_cms_write(
        "cms_addImageToSection",
        "Puts an image of the site into an image field of a section.",
        make_object_schema(
            {"imageId": _TEXT, "pageSectionId": _TEXT, "fieldName": _TEXT, "localeCode": _LOCALE},
            *("imageId", "pageSectionId", "fieldName"),
        ),
        image_tools.use_section_image,
    ),
    make_cms_write(
        "cms_replaceImage",
        "Replaces an image by another one wherever pages and posts of the site use it.",
        make_object_schema({"oldImageDescription": _TEXT, "newImageId": _TEXT}, "oldImageDescription", "newImageId"),
        image_tools.replace_image,
    ),
    make_cms_write(
        "cms_deleteImage",
        "Deletes an image of the site, once a person has approved it. Prefer its id to a description.",
        make_object_schema(
            {
                "description": {"type": "string", "description": "what to delete, in words"},
                "imageId": {"type": "string", "description": "prefer it"},
                "confirmed": {
                    "type": "boolean",
                    "description": "accepted, and does not replace the approval",
                    "default": False,
                },
            },
        ),
        image_tools.delete_image,
        risk=Risk.HIGH,
        is_approved=True,
    ),
)
