"""Oracle: random histories of long-term memories, in which the engine must agree with a simple reference."""
