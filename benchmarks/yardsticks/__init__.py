"""Recollect beside LangGraph's PostgresStore and Chroma, with the same model, in one run."""
