"""`clew chat`: input, screen, permission prompts and sessions."""
