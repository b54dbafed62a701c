"""What can be known from text alone: words, passages, dates and names. No database, no model."""
