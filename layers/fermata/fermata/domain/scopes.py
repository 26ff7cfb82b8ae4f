"""Define the scopes: the parts of the editor a conversation can belong to."""

from typing import Literal, get_args

Scope = Literal["site", "content", "data", "plugin"]
SCOPES: tuple[str, ...] = get_args(Scope)
