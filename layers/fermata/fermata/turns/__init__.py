"""Run turns: from a prompt to its end. The only package that orchestrates the others.

The files here are shared; each folder holds one thing that happens to a turn, as its name says.
"""
