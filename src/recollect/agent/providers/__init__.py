"""Providers: the models that answer, each behind the same narrow protocol."""
