"""The agent's files: curated memory, skills, sessions."""
