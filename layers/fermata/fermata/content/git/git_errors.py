"""Define what can go wrong with a Git server, and who can mend it."""

from fermata.domain.errors import BadGateway, Conflict


class GitUnavailable(BadGateway):
    """The server did not answer, or not as a Git server does."""

    code = "gitUnavailable"


class GitAccessRefused(Conflict):
    """The server refuses the credentials, or asks for some."""

    code = "gitAccessRefused"


class GitMoved(Conflict):
    """The repository is at another address. `details` names it."""

    code = "gitMoved"

    def __init__(self, location: str) -> None:
        super().__init__(f"The repository has moved to {location[:500]}. Change its address, and try again.")
        self.details = {"location": location[:500]}


class GitRejected(Conflict):
    """The server does not take the commit, as of a protected branch. Nothing was changed there."""

    code = "gitRejected"


class GitHeadMoved(Exception):
    """Somebody has committed to the branch since it was read."""
