"""A package to pytest: what its fixtures of that scope start ends with its last test."""
