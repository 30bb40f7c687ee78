"""The routes of the REST door, one module for each noun."""
