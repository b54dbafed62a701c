"""Secrets and personal numbers in a text, found by their form and their check digits, and written over."""
