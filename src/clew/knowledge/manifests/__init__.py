"""What manifests declare: a parser for each ecosystem, one record for all. Manifests are read, never run."""
