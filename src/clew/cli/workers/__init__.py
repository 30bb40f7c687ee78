"""The worker processes of `clew up`: their children, and how they end."""
