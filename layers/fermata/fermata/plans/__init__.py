"""Edit plans: the operations of a plan, how a model's plan is read, and how it changes the pages of a site."""
