"""A verdict in words: for the person who sent the job, in one breath.

UnitJudgement -> findings, hints -> wording -> sentences
"""
