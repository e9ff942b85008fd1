"""The picture of a run: where reserved memory comes from, and who holds memory when.

Program, allocator -> Account, Timeline; JobSpec, Devices -> JobAccounts, JobDrawing
"""
