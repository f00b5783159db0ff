"""From the question to ranked candidates, the first half of the graph."""
