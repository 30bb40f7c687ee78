"""The parts of benchmarks/trail.py: one module a measure, one a contender, and what they share."""
