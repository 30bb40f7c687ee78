"""What others wrote: documents of the repository and of its packages, and sources that were taken in."""
