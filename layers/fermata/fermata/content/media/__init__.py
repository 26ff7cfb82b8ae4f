"""Keep images of a space: redraw them, store them in several sizes, deliver them."""
