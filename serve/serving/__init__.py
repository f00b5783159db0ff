"""The graph as Ray Serve deployments."""
