"""What an agent sees, why, since when and at what cost: exposure sets."""
