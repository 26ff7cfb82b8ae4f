"""Name the permissions that the tools of the site toolset require."""

CAN_READ_SITE = frozenset({"site.read"})
CAN_EDIT_STRUCTURE = frozenset({"site.structure.edit"})
CAN_EDIT_STYLE = frozenset({"site.style.edit"})
CAN_EDIT_CONTENT = CAN_EDIT_STRUCTURE | {"site.content.edit"}
"""For tools that change words or names only."""
