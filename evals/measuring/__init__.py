"""What one asked case, and a whole run, is worth."""
