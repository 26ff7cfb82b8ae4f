"""Tools of the planner: reading the pages of a draft, and submitting a plan that changes them."""
