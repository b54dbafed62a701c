"""Defence: screening, review, provenance and masking."""
