"""The console: pages at /console that show a memory in a browser, and change it."""
