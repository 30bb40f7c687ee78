"""What is wrong with definitions and where, what was meant, and how it is mended."""
