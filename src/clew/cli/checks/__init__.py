"""The checks of `clew doctor` and `clew skills lint`."""
