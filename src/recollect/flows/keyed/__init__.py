"""What agent frameworks keep under keys of their own: records, which are found again, and checkpoints."""
