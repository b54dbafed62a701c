"""How a provider is asked: politely, in turn, within the budget."""
