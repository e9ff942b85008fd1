"""Models of the allocators that stand between a framework and the driver.

    Program -> replay -> Allocator

One file an allocator, one protocol for all of them.
Never touches a GPU, a framework or an environment variable.
"""
