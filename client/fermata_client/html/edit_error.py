"""Define the error of an edit that was refused."""


class EditError(ValueError):
    """An edit was refused. The message is for the model: the cause, and what to do instead."""
