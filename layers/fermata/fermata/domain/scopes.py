"""Where in the editor a conversation lives."""

from typing import Literal, get_args

Scope = Literal["site", "content", "data", "plugin"]
SCOPES: tuple[str, ...] = get_args(Scope)
