"""Consent of the user to the files of a folder that run code or reach hosts."""
