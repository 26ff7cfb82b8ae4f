"""Name fields as JSON does."""


def to_wire_name(field: str) -> str:
    """Return the camelCase name of a field: `created_at` is `createdAt`, and `i18n`, which is one word, stays."""
    first, *others = field.split("_")
    return first + "".join(other.capitalize() for other in others)
