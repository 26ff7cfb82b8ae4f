"""Name the permissions that the tools of the content toolset require."""

CAN_READ_SCHEMAS = frozenset(
    {"data.custom.tables.read", "data.custom.tables.manage", "data.system.tables.read", "data.system.tables.manage"}
)
CAN_CREATE_DOCUMENTS = frozenset({"content.create"})
CAN_EDIT_DOCUMENTS = frozenset({"content.edit.own", "content.edit.any", "content.manage"})
CAN_PUBLISH_DOCUMENTS = frozenset({"content.publish.own", "content.publish.any"})
CAN_READ_DOCUMENTS = CAN_CREATE_DOCUMENTS | CAN_EDIT_DOCUMENTS | CAN_PUBLISH_DOCUMENTS
CAN_SET_AUTHORS = frozenset({"content.edit.any", "content.manage"})
CAN_MANAGE_USERS = frozenset({"users.manage"})
CAN_READ_MEDIA = frozenset({"media.read"})
