"""Work that takes longer than a request."""
