"""Rules for operators, a file a family; `table.py` has them all by name."""
