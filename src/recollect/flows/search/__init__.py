"""Search: finds the items that answer a question, by keywords and by vectors."""
