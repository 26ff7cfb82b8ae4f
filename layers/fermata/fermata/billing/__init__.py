"""Report what workspaces use of their plans to the billing system of the operator, and lose none of it."""
