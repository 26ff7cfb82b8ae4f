"""Build the paths of the service's resources, with ids and names percent-encoded."""

from urllib.parse import quote


def path_of(*segments: str) -> str:
    """Join segments to a path. A segment may hold any character, also a slash."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)
