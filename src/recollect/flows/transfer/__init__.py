"""Export, import, and the formats of other programs."""
