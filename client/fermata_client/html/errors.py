"""Why an edit was not made."""


class EditError(ValueError):
    """A sentence for the model: what is wrong, and what to do instead."""
