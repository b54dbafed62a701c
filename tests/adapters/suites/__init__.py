"""One module for each suite of tests that a maker publishes; each has a `SUITE`."""
