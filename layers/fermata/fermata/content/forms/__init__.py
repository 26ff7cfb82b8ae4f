"""Let visitors of a site submit documents of a model, and let moderators decide what becomes of them."""
