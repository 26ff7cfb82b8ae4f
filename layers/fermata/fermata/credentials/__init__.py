"""Keeps keys sealed; knows each scope's default and which models a key opens.

A credential belongs to its tenant: whoever may chat there may use it, by a scope's default or by its id. Only the
user who entered it sees it in lists, changes it, tries it or removes it.
"""
