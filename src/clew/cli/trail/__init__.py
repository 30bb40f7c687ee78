"""Commands over the trail."""
