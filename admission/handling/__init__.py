"""The steps of one review, for `handler`: read and judge, patch, count.

Review -> Judgement -> JSONPatch; Judgement -> metrics, one log line
"""
