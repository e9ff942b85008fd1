"""Scripts that make data of ours. Not part of the product: run by hand, what they write is kept."""
