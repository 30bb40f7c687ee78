"""Sessions of work: their states, their record on the trail, and the gate that messages pass."""
