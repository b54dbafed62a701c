"""The only code that runs or calls a model."""
