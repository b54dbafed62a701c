"""The page of a question: its form, what it was answered, and the calls that ask the same."""
