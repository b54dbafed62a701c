"""The weights of recall: fits those of the ranking, and checks the relevance, on conversations with known answers."""
