"""Which cards the cluster has, what one pod gets of each, and where a pod may go.

Nodes -> NodeClasses; Unit, NodeClasses -> Reach
"""
