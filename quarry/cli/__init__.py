"""The command `quarry`: the composition root, and the only place that sees all packages."""
