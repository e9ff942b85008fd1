"""How far the estimates are from published measurements: the accuracy part of `make bench`.

cases -> answers -> scores -> tables -> docs/accuracy.md
"""
