"""What each stage did with a question, and where an expected phrase was lost."""
