"""Certificates that renew themselves: one Secret, one CA of our own, the `caBundle` kept right.

Nothing is imported here: each file is asked for by its own name.
"""
