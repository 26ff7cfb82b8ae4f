"""Notice secrets in content, which is published: keys of services, addresses of databases with their passwords."""

import re
from collections.abc import Iterator
from typing import Any

from fermata.content.validation.content_problem import ContentProblem
from fermata.content.validation.value_places import ValuePlace, iter_containers, iter_members

_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)_\w|sk-(?:ant|proj|svcacct|admin|or)-[\w-]{10}|sk-[A-Za-z0-9]{20}"
    r"|gh[opsur]_\w|github_pat_\w|glpat-[\w-]{15}|npm_[A-Za-z0-9]{30}|hf_[A-Za-z0-9]{30}"
    r"|AKIA[A-Z0-9]|ASIA[A-Z0-9]{16}|AIza[\w-]{30}|xox[abeoprs]-[\w-]{10}|whsec_[\w+/]{16}|SG\.[\w-]{20}\.[\w-]{20}"
    r"|crn_conv_[\w-]{8}|fmk_[\w-]{20}"
    r"|eyJ[\w-]{10,200}\.eyJ[\w-]{10}|Bearer [\w.~+/-]{8}"
    r")"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:postgres|postgresql|mysql|mariadb|mongodb|mongodb\+srv|redis|rediss|amqp|amqps|mssql)://[^/\s@]{1,200}@"
    r"|(?i:api[_-]?key|aws_secret(?:_access_key)?)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[\w.+/-]{6}"
    r"|(?i:client|app)[_-]?(?i:secret)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[\w.+/-]{12}"
)
"""How secrets begin, and what they are assigned to. What only mentions one is none: `task_list`, "your API key"."""


def looks_like_secret(text: str) -> bool:
    """Return whether any part of a text looks like a secret."""
    return _SECRET.search(text) is not None


def describe_secret(path: str) -> ContentProblem:
    """Return the problem of a text that looks like a secret.

    Args:
        path: Where it is.
    """
    message = f"{path} looks like it holds a secret, and content is published. Remove it."
    return ContentProblem(field=path, kind="secret", message=message)


def find_secrets(value: Any, path: str) -> Iterator[ContentProblem]:
    """Yield the problems of texts that look like secrets in what no field describes, at any depth.

    Args:
        value: What JSON may hold.
        path: Where it is.
    """
    if isinstance(value, str) and looks_like_secret(value):
        yield describe_secret(path)
    for place, container in iter_containers(value):
        for name, member in iter_members(container):
            if isinstance(member, str) and looks_like_secret(member):
                within = ValuePlace(place, name).to_path()
                yield describe_secret(f"{path}{within}" if within.startswith("[") else f"{path}.{within}")
