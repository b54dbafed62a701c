"""Who may come in, and what they spent."""
