"""Why an edit was not made."""


class CannotDo(ValueError):
    """A sentence for the model: what is wrong, and what to do instead."""
