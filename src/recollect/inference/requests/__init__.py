"""How a provider is called: rate-limited, in turn, within the budget."""
