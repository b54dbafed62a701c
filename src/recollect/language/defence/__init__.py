"""Signs that a text was written to steer a model and not to inform anybody."""
