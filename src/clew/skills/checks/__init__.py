"""Problems in definitions: their places, near names, and automatic fixes."""
