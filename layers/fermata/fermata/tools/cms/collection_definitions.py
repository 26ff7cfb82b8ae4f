"""Define the tools for posts and other entries of collections."""

from fermata.tools.cms import entry_tools, input_schemas, post_tools
from fermata.tools.cms.tool_factory import make_cms_read, make_cms_write
from fermata.tools.tool import Risk

CMS_POST_TOOLS = (
    make_cms_read(
        "cms_getPosts",
        "Lists the posts of a collection by status and category; published ones unless it is said.",
        input_schemas.GET_POSTS_SCHEMA,
        post_tools.get_posts,
        "cms_listPosts",
    ),
    make_cms_read(
        "cms_getPost",
        "Returns a post with its content in one language.",
        input_schemas.GET_POST_SCHEMA,
        post_tools.get_post,
    ),
    make_cms_write(
        "cms_createPost",
        "Creates a post of a collection as a draft, with its content in one language.",
        input_schemas.CREATE_POST_SCHEMA,
        post_tools.create_post,
        risk=Risk.SAFE,
    ),
    make_cms_write(
        "cms_updatePost",
        "Changes a post in one language. Facts and content that are not named stay.",
        input_schemas.UPDATE_POST_SCHEMA,
        post_tools.update_post,
    ),
    make_cms_write(
        "cms_publishPost",
        "Publishes a post, once a person has approved it.",
        input_schemas.CHANGE_POST_STATUS_SCHEMA,
        post_tools.publish_post,
        risk=Risk.HIGH,
        is_approved=True,
    ),
    make_cms_write(
        "cms_archivePost",
        "Archives a post, once a person has approved it.",
        input_schemas.CHANGE_POST_STATUS_SCHEMA,
        post_tools.archive_post,
        risk=Risk.HIGH,
        is_approved=True,
    ),
    make_cms_write(
        "cms_deletePost",
        "Deletes a post, once a person has approved it.",
        input_schemas.CHANGE_POST_STATUS_SCHEMA,
        post_tools.delete_post,
        risk=Risk.HIGH,
        is_approved=True,
    ),
)
CMS_ENTRY_TOOLS = (
    make_cms_read(
        "cms_getCollectionEntries",
        "Lists the entries of a collection, without their content unless it is asked for.",
        input_schemas.GET_COLLECTION_ENTRIES_SCHEMA,
        entry_tools.get_collection_entries,
    ),
    make_cms_read(
        "cms_getEntryContent",
        "Returns the content of an entry in one language.",
        input_schemas.GET_ENTRY_CONTENT_SCHEMA,
        entry_tools.get_entry_content,
    ),
    make_cms_write(
        "cms_createEntry",
        "Creates an entry of a collection as a draft.",
        input_schemas.CREATE_ENTRY_SCHEMA,
        entry_tools.create_entry,
    ),
    make_cms_write(
        "cms_updateEntry",
        "Changes the title of an entry, or fields of its content in one language.",
        input_schemas.UPDATE_ENTRY_SCHEMA,
        entry_tools.update_entry,
    ),
    make_cms_write(
        "cms_deleteEntry",
        "Deletes an entry, once the user has confirmed it.",
        input_schemas.DELETE_ENTRY_SCHEMA,
        entry_tools.delete_entry,
        risk=Risk.HIGH,
        is_confirmed=True,
    ),
)
