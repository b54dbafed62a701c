"""Adapters: Recollect behind the memory interfaces of agent frameworks, one module each, over HTTP alone."""
