"""Read the option that names the hosts which the HTTP tools may reach (decision 0355)."""

import re
from collections.abc import Mapping

from fermata.domain.errors import InvalidRequest

HOSTS_OPTION = "hosts"
ANY_HOST = "*"
"""Stands for every public host."""
_HOST_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}\.){0,20}[a-z0-9-]{0,62}[a-z0-9]|[a-z0-9]")


def split_host_names(option: str) -> list[str]:
    """Return the names of an option, in lower case."""
    return option.lower().replace(",", " ").split()


def check_host_names(option: str) -> None:
    """Check what an administrator has written.

    Raises:
        InvalidRequest: It names no hosts, or something else.
    """
    names = split_host_names(option)
    if names == [ANY_HOST]:
        return
    wrong = next((name for name in names if not _HOST_NAME.fullmatch(name)), None)
    if wrong is not None or not names:
        found = f"{wrong[:120]!r} is none. " if wrong else ""
        raise InvalidRequest(
            f"The option 'hosts' lists names of hosts, such as 'api.example.com, example.org'. {found}"
            "A name stands for its subdomains too. '*' alone stands for every public host."
        )


def may_reach_any_host(options: Mapping[str, str]) -> bool:
    """Return whether a tool with these options reaches every public host."""
    return ANY_HOST in split_host_names(options.get(HOSTS_OPTION, ""))
