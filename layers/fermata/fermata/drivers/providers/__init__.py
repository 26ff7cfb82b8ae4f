"""The providers, one module each; `registry.py` lists them."""
