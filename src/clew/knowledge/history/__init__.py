"""What was done, and why: the chronicle on the trail, and what git remembers."""
