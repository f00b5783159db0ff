"""From candidates to a checked answer, the second half of the graph."""
