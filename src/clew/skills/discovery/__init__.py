"""Skills and their references on a trail, found by what they are for."""
