"""Keep changes apart from the content until they are merged: what the studio calls a branch."""
