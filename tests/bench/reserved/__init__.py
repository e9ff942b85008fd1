"""Where the reserved memory of three known jobs comes from: docs/reserved.md.

jobs -> accounts -> docs/reserved.md
"""
