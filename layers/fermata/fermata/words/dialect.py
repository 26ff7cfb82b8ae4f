"""Which generation of clients a tenant's browsers speak (design §7)."""

from typing import Literal

Dialect = Literal["fermata", "instatic"]
