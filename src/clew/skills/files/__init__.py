"""Reading of definition files: walks over trees, markdown, front matter, links, and a watch for changes."""
