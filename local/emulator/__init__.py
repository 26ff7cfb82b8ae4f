"""Emulate AWS with MiniStack 1.5.33, patched where its behavior differs from AWS and this product relies on it.

The emulator runs in its own virtual environment. Its patches are in `patches/`, the processes of functions in
`runtime/`.
"""
