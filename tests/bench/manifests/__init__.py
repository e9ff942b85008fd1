"""How much of published-like training manifests is read, key by key.

manifests with expected readings (`tests/corpus`) -> differences
"""
