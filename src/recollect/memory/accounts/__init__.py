"""Keys and usage."""
