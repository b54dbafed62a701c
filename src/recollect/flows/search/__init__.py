"""Search: a question in, the items that answer it out, by keywords and by vectors."""
