"""The picture of a run: where reserved memory comes from, event by event.

Program, allocator -> Account; JobSpec, Devices -> JobAccounts
"""
