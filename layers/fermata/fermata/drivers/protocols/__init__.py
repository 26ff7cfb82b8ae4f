"""Map requests to the providers' protocols, and fold their streams into responses."""
