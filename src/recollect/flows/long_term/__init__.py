"""Long-term memories of users, agents and sessions."""
