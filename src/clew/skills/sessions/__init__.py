"""One agent in one conversation: what it has loaded, what follows from that, and why."""
