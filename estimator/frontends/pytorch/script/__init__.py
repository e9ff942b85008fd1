"""A person's own training script, run to its end or cut after a few steps: `vramgate trace` only.

    train.py, its arguments -> the script run as `__main__` -> Trace, and the job as it was read

Nothing that answers a review may import this (`lint-imports`). It runs in a child process of the
command, in the sandbox of `estimator.workers.user_sandbox`.
"""
