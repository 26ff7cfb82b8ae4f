"""A stand-in for a model: speaks Anthropic's Messages protocol, answers by rules, and says so."""
