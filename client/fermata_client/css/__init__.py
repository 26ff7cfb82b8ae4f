"""CSS as bytes with positions: parse style sheets, merge rules into them, remove rules from them."""
