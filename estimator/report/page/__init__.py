"""The picture as one self-contained page that asks nobody for anything.

JobDrawings, words about them -> HTML
"""
