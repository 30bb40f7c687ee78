"""The tools of members, one module for each role or subject."""
