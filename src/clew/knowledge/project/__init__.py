"""What a project says of itself: its style, its parts, its packages, its design tokens and its tools."""
