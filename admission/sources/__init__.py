"""Documents that a reading wants, fetched with limits on size, time and addresses.

references -> Documents; a document that cannot be had says why

Nothing fetched is ever executed. Secrets are never read.
"""
