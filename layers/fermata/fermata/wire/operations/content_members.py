"""Operations on the list of members of a space (decision 0424)."""

from fermata.wire.bodies.content_requests import MemberRights
from fermata.wire.operations.common import CAN_MANAGE_CONTENT, OK_RESPONSES
from fermata.wire.operations.content import CONTENT_PATH
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_MEMBERS_PATH = f"{CONTENT_PATH}/{{site}}/{{environment}}/members"
_MEMBER_PATH = f"{_MEMBERS_PATH}/{{member}}"
_NO_SPACE = {400: "A name has another form than names have.", 404: "There is no such site or environment."}
_MEMBER = RequestParameter(
    "member", "The id of a user of the workspace.", {"type": "string"}, required=True, location="path"
)

LIST_SPACE_MEMBERS = Operation(
    name="listSpaceMembers", function="api", method="GET", path=_MEMBERS_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="List who may work in a space",
    responses=(SuccessResponse("The members by user.", "SpaceMemberListResponse"),),
    errors=_NO_SPACE,
)  # fmt: skip
PUT_SPACE_MEMBER = Operation(
    name="putSpaceMember", function="api", method="PUT", path=_MEMBER_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Say what a user may do in a space",
    description="The first member begins the list. From then on, users without a row may do nothing there, unless they "
    "may manage content. A row never permits more than the rights of its user. It counts from the next request and "
    "the next call of a tool on.",
    parameters=(_MEMBER,),
    body=MemberRights,
    responses=(SuccessResponse("The member.", "SpaceMemberResponse"),),
    errors=_NO_SPACE
    | {
        400: "The body is not as described, or the space has no such language.",
        402: "The plan of the workspace is locked, or has no more members, or no restrictions.",
        409: "Somebody else has changed the member at the same moment.",
        429: "The space has as many members as it may have.",
    },
)  # fmt: skip
REMOVE_SPACE_MEMBER = Operation(
    name="removeSpaceMember", function="api", method="DELETE", path=_MEMBER_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Remove a member of a space",
    description="The list stays, even if nobody is left on it.",
    parameters=(_MEMBER,),
    responses=OK_RESPONSES,
    errors=_NO_SPACE
    | {
        404: "There is no such site, environment or member.",
        409: "Somebody else has changed the member at the same moment.",
    },
)  # fmt: skip
DELETE_MEMBER_LIST = Operation(
    name="deleteMemberList", function="api", method="DELETE", path=_MEMBERS_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Delete the list of members, so that rights alone count again",
    responses=OK_RESPONSES,
    errors=_NO_SPACE,
)  # fmt: skip
CONTENT_MEMBER_HANDLERS = (
    (LIST_SPACE_MEMBERS, "member_requests:list_space_members"),
    (PUT_SPACE_MEMBER, "member_requests:put_space_member"),
    (REMOVE_SPACE_MEMBER, "member_requests:remove_space_member"),
    (DELETE_MEMBER_LIST, "member_requests:delete_space_members"),
)
"""Operations and their handlers in `content_api/`, as `module:function`."""
