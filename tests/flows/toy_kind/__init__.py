"""A kind of memory that ships nowhere: what a new one costs."""
