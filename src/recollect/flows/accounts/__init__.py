"""Who uses a memory and how much: keys, activity, spending."""
