"""The figures quoted in the docs, measured: `make bench`. Not tests: they depend on the machine."""
