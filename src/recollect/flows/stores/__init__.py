"""Memory stores: folders of text files that agents keep, each change of a file with its version."""
