"""The whole way from a workload to a verdict, the same for the webhook and the commands.

Workload, NodeClasses, Estimator -> UnitJudgements -> Judgement
"""
