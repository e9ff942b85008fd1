"""What jobs that ran have taught, and what of it holds for a job that comes.

    deaths -> entries of a ConfigMap -> Floors of a workload's containers

Pure. The controller writes the ConfigMap, `serve` follows it.
"""
