"""Commands on memories: store, recall, forget, move, measure."""
