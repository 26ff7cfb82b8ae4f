"""Keep API keys sealed, each scope's default model, and the list of models that a key opens.

A credential belongs to its tenant: everybody who may chat there may use it, through a scope's default or by its id.
Only the user who entered it sees it in lists, changes it, tests it or deletes it.
"""
