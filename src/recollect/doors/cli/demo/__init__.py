"""`recollect demo`."""
