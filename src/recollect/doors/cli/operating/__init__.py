"""Commands for operators: the database, keys, models, figures."""
