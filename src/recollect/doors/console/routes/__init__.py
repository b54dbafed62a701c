"""Pages, one module per part of the console; each lists its routes in ROUTES."""
