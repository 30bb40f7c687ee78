"""One agent in one conversation: its loaded skills, the tools that follow, and the reasons."""
