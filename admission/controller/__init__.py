"""What happens after admission: pods held, jobs taken up again, moved, or explained.

    objects as they are -> acts, each with an Event that says why

One controller is at work at a time (`lease`). It keeps nothing of its own: a new one reads the
objects and goes on. Order of a look: watches -> `store` -> `line` -> a duty -> `acts` -> `acting`.
"""
