"""Child processes of ours: the limits they put on themselves and the frames between them."""
