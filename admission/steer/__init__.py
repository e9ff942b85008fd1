"""Where the pods of a judged workload should go, written into the object under review.

object, UnitJudgements -> the object as it should be -> JSONPatch

Pure. Never against the person's own terms, and nothing that could not be applied.
"""
