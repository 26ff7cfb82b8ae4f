"""Speaks to one provider and folds its stream into our words."""
