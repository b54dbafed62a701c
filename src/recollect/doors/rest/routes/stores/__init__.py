"""Memory stores as clients of the Anthropic API call them: one module per resource."""
