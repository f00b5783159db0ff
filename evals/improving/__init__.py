"""Finding what went wrong, and settings that do better."""
