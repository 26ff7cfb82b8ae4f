"""Define agents: the records that say what makes one assistant different from another. `turns/` asks only them."""
