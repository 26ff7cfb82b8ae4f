"""Notice secrets in content, which is published: keys of services, addresses of databases with their passwords."""

import re

_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)_\w|gh[opsu]_\w|github_pat_\w|AKIA[A-Z0-9]|Bearer [\w.~+/-]{8})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:postgres|postgresql|mysql|mongodb|mongodb\+srv)://[^/\s@]{1,200}@"
    r"|(?i:api[_-]?key|aws_secret(?:_access_key)?)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[\w.+/-]{6}"
)
"""How secrets begin, and what they are assigned to. What only mentions one is none: `task_list`, "your API key"."""


def looks_like_secret(text: str) -> bool:
    """Return whether any part of a text looks like a secret."""
    return _SECRET.search(text) is not None
