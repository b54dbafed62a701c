"""The agent runtime: curated files, skills, sessions and a best-effort memory gateway, reached over HTTP only."""
