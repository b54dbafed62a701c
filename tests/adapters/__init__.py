"""The makers' own tests of the interfaces that the adapters have, run against the adapters: `make adapters`."""
