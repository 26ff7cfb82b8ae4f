"""How events and errors look outside; callers and manners at the HTTP edge."""
